package redis

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce"
)

// Marks keeps short values under keys for a while: a cache beside another
// store. They lie under hookonce:mark:<message id of the key>, whatever Redis
// forgets of them is not missed, and nothing here is repeated.
type Marks struct{ client redis.UniversalClient }

// OpenMarks prepares the connections, without connecting yet: the cache may be
// away. url is as in [Options]. Its errors never show the URL's password.
func OpenMarks(url string) (*Marks, error) {
	a, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	return &Marks{client: a.universal()}, nil
}

func markName(k hookonce.Key) string { return "hookonce:mark:" + k.MessageID() }

// Get reads the values of keys in one round trip; nil where there is none, or
// none of this kind.
func (m *Marks) Get(ctx context.Context, keys []hookonce.Key) ([][]byte, error) {
	p := m.client.Pipeline() // in a Cluster the keys lie apart, which MGET cannot do
	answers := make([]*redis.StringCmd, len(keys))
	for i, k := range keys {
		answers[i] = p.Get(ctx, markName(k))
	}
	cmds, err := p.Exec(ctx)
	// Each answer has its own error, but without a connection none has.
	if err != nil && !slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Err() != nil }) {
		return nil, err
	}
	out := make([][]byte, len(keys))
	for i, a := range answers {
		v, err := a.Bytes()
		switch {
		case err == nil:
			out[i] = v
		case !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "WRONGTYPE"):
			return nil, err
		}
	}
	return out, nil
}

// Put writes values in one round trip; each is gone after its time.
func (m *Marks) Put(ctx context.Context, keys []hookonce.Key, values [][]byte, ttls []time.Duration) error {
	p := m.client.Pipeline()
	for i, k := range keys {
		p.Set(ctx, markName(k), values[i], max(ttls[i], time.Millisecond))
	}
	_, err := p.Exec(ctx)
	return err
}

// Ping tells whether the server answers.
func (m *Marks) Ping(ctx context.Context) error { return m.client.Ping(ctx).Err() }

// Close closes the connections. It may be called more than once.
func (m *Marks) Close() error {
	if err := m.client.Close(); !errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}
