package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Warnings says, a line each, what this server's configuration may lose, in a
// cluster that of any of its masters. It reads CONFIG, or INFO where that is
// forbidden; what it cannot read it says.
func (s *Store) Warnings(ctx context.Context) []string {
	var mu sync.Mutex
	var out []string
	err := s.nodes.each(ctx, func(ctx context.Context, c *redis.Client) error {
		found := append(nodeWarnings(ctx, c), s.replicaWarnings(ctx, c)...)
		mu.Lock()
		defer mu.Unlock()
		for _, w := range found {
			if !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
		return nil
	})
	if err != nil {
		out = append(out, fmt.Sprintf("redis: the masters could not be asked for their settings: %v", err))
	}
	return out
}

func nodeWarnings(ctx context.Context, c *redis.Client) []string {
	var out []string
	aof, errAOF := setting(ctx, c, "appendonly", "persistence", "aof_enabled")
	switch {
	case errAOF != nil:
		out = append(out, fmt.Sprintf("redis: appendonly could not be read (%v): without it every restart of Redis forgets accepted events", errAOF))
	case aof != "yes" && aof != "1":
		out = append(out, "redis: appendonly is off: when Redis ends, accepted events that are not published yet are lost, and claims "+
			"since its last snapshot too, so that repeats are taken for new; set appendonly yes and appendfsync always")
	default:
		out = append(out, fsyncWarning(ctx, c)...)
	}
	policy, err := setting(ctx, c, "maxmemory-policy", "memory", "maxmemory_policy")
	switch {
	case err != nil:
		out = append(out, fmt.Sprintf("redis: maxmemory-policy could not be read (%v): with any but noeviction, Redis forgets claims when memory is short", err))
	case policy != "noeviction":
		out = append(out, fmt.Sprintf("redis: maxmemory-policy is %s: when memory is short, claims are evicted and repeats are taken for new; "+
			"set it to noeviction", policy))
	}
	return out
}

// replicaWarnings compares the replicas that are there with Options.Wait. They
// are not looked for where INFO is forbidden: a missing one shows itself.
func (s *Store) replicaWarnings(ctx context.Context, c *redis.Client) []string {
	text, err := infoField(ctx, c, "replication", "connected_slaves")
	n, bad := strconv.Atoi(text)
	switch {
	case err != nil || bad != nil:
		return nil
	case s.o.Wait == 0 && n > 0:
		return []string{fmt.Sprintf("redis: there are replicas (%d) and redis_wait is 0: when one takes over, accepted events and claims "+
			"that it did not have yet are lost; set redis_wait: 1 or more", n)}
	case n < s.o.Wait:
		return []string{fmt.Sprintf("redis: redis_wait is %d and there are %d replicas: every delivery is answered 503 until there are enough", s.o.Wait, n)}
	}
	return nil
}

func fsyncWarning(ctx context.Context, c *redis.Client) []string {
	values, err := c.ConfigGet(ctx, "appendfsync").Result()
	switch fsync := values["appendfsync"]; {
	case err != nil || fsync == "":
		return []string{"redis: appendfsync could not be read (CONFIG is forbidden): with everysec a crash may lose about 2 s of accepted events"}
	case fsync == "everysec":
		return []string{"redis: appendfsync is everysec: a crash of the server may lose about 2 s of accepted events and claims; " +
			"set appendfsync always to lose none"}
	case fsync != "always":
		return []string{fmt.Sprintf("redis: appendfsync is %s: a crash of the machine may lose all accepted events that the system "+
			"has not written yet; set appendfsync always to lose none", fsync)}
	}
	return nil
}

// setting reads a setting by its CONFIG name, or as a field of an INFO section.
func setting(ctx context.Context, c *redis.Client, name, section, field string) (string, error) {
	values, err := c.ConfigGet(ctx, name).Result()
	if err == nil && values[name] != "" {
		return values[name], nil
	}
	info, infoErr := infoField(ctx, c, section, field)
	if infoErr != nil && err != nil {
		return "", err
	}
	return info, infoErr
}

// infoField is a field of an INFO section.
func infoField(ctx context.Context, c *redis.Client, section, field string) (string, error) {
	info, err := c.Info(ctx, section).Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return v, nil
		}
	}
	return "", fmt.Errorf("neither CONFIG nor INFO shows %s", field)
}
