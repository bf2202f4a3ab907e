package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hookonce/hookonce"
)

var (
	// errForeign says that a value is not one of ours.
	errForeign = errors.New("a value under idem: that Hookonce did not write (see store.adopt)")
	// errUnfinished says that an older guard's value is neither final nor a response.
	errUnfinished = errors.New("the older guard's value is no stored response and no status of store.adopt's final: list")
	// errShared says that a short form of a long key is somebody else's.
	errShared = errors.New("another key has the same name in Redis")
	// errStore marks what the server or the way to it is to blame for.
	errStore = errors.New("redis")
)

// unknown notes whether the server answered, and makes an error wrap
// hookonce.ErrUnknown.
func (s *Store) unknown(err error) error {
	if err == nil {
		s.o.Metrics.StoreUp.WithLabelValues("redis").Set(1)
		return nil
	}
	if !errors.Is(err, context.Canceled) {
		s.o.Metrics.StoreUp.WithLabelValues("redis").Set(0)
	}
	if hint := hint(err); hint != "" {
		return fmt.Errorf("%w: %w: %s: %w", hookonce.ErrUnknown, errStore, hint, err)
	}
	return fmt.Errorf("%w: %w: %w", hookonce.ErrUnknown, errStore, err)
}

// hint says what to do about an error.
func hint(err error) string {
	if errors.Is(err, errTooFew) {
		return "the claim is made and not safe yet: see to the replicas, or lower redis_wait"
	}
	if !isAnswer(err) {
		return ""
	}
	for prefix, text := range map[string]string{
		"OOM":         "Redis is out of memory: raise maxmemory (policy noeviction) or lower max_outbox_bytes",
		"MISCONF":     "Redis cannot save to its disk: see its log",
		"READONLY":    "this Redis is a replica: use the URL of its master",
		"NOAUTH":      "Redis wants a password: put it into the URL",
		"WRONGPASS":   "Redis refuses the user or password of the URL",
		"NOPERM":      "this Redis user lacks a right: it needs +@scripting +@read +@write +@connection +time +wait on ~idem:* ~hookonce:*, for a cluster +cluster too",
		"MOVED":       "this Redis is one node of a cluster: use redis-cluster://",
		"CROSSSLOT":   "this Redis is one node of a cluster: use redis-cluster://",
		"CLUSTERDOWN": "the Redis cluster has no master for some keys: see CLUSTER INFO",
		"ERR This instance has cluster support disabled": "this Redis is no cluster: use redis://",
	} {
		if strings.HasPrefix(err.Error(), prefix) || strings.Contains(err.Error(), "-"+prefix+" ") {
			return text
		}
	}
	return ""
}
