package redis

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// nodes finds the server for a request.
type nodes interface {
	// of is the node that a request goes to.
	of(ctx context.Context, r *request) (*redis.Client, error)
	// reload says that what is known of the nodes may be outdated.
	reload(ctx context.Context)
	// each calls f for every node that takes writes.
	each(ctx context.Context, f func(ctx context.Context, c *redis.Client) error) error
	Close() error
}

// oneNode is one server, or the master that Sentinel names: the library then
// asks for it whenever it connects.
type oneNode struct{ *redis.Client }

func (n oneNode) of(context.Context, *request) (*redis.Client, error) { return n.Client, nil }

func (oneNode) reload(context.Context) {}

func (n oneNode) each(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	return f(ctx, n.Client)
}

// cluster knows which node has a slot from the library, and speaks to the nodes
// itself: the library's own calls on a cluster would send a command again whose
// answer was lost, and could not put a WAIT behind it on the same connection.
type cluster struct {
	*redis.ClusterClient
	options *redis.Options // of a single node, without its address

	mu     sync.Mutex
	byAddr map[string]*redis.Client // nodes that others have sent us to
}

// newCluster prepares the clients. The library repeats a command up to redirects
// times, whether it was redirected or its answer lost; -1 for never.
func newCluster(addrs []string, o *redis.Options, redirects int) *cluster {
	return &cluster{options: o, byAddr: map[string]*redis.Client{}, ClusterClient: redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:                    addrs,
		MaxRedirects:             redirects,
		MaxRetries:               o.MaxRetries,
		Username:                 o.Username,
		Password:                 o.Password,
		TLSConfig:                o.TLSConfig,
		DialTimeout:              o.DialTimeout,
		DialerRetries:            o.DialerRetries,
		ReadTimeout:              o.ReadTimeout,
		WriteTimeout:             o.WriteTimeout,
		ContextTimeoutEnabled:    o.ContextTimeoutEnabled,
		PoolTimeout:              o.PoolTimeout,
		PoolSize:                 o.PoolSize,
		DisableIdentity:          o.DisableIdentity,
		DisableRoutingPolicies:   true,
		MaintNotificationsConfig: o.MaintNotificationsConfig,
	})}
}

func (n *cluster) of(ctx context.Context, r *request) (*redis.Client, error) {
	if r.addr == "" {
		return n.MasterForKey(ctx, r.key)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byAddr[r.addr] == nil {
		o := *n.options
		o.Addr = r.addr
		n.byAddr[r.addr] = redis.NewClient(&o)
	}
	return n.byAddr[r.addr], nil
}

func (n *cluster) reload(ctx context.Context) { n.ReloadState(ctx) }

func (n *cluster) each(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	err := n.ForEachMaster(ctx, f)
	if err != nil {
		n.ReloadState(ctx)
	}
	return err
}

func (n *cluster) Close() error {
	errs := []error{n.ClusterClient.Close()}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.byAddr {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
