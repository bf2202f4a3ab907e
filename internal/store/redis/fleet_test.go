package redis_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// node is a Redis process of one test: of a cluster, of a Sentinel group, or
// with settings that testenv has no use for.
type node struct {
	t    *testing.T
	port int
	dir  string
	args []string
	cmd  *exec.Cmd
}

// startNode starts a server in memory only, unless args say otherwise.
func startNode(t *testing.T, args ...string) *node {
	t.Helper()
	n := newNode(t)
	n.args = append([]string{
		"--port", strconv.Itoa(n.port), "--bind", "127.0.0.1", "--dir", n.dir,
		"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0", "--databases", "64",
	}, args...)
	n.start()
	return n
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, port: freePort(t), dir: t.TempDir()}
	t.Cleanup(n.kill)
	return n
}

// freePort is one whose twin for the cluster's own talk, 10000 above, is free too.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		port := l.Addr().(*net.TCPAddr).Port //nolint:errcheck,forcetypeassert // it is one
		must(t, l.Close())
		if port > 55000 {
			port -= 20000
			if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
				continue
			}
			must(t, l.Close())
		}
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+10000)); err != nil {
			continue
		}
		must(t, l.Close())
		return port
	}
	t.Fatal("no two free ports")
	return 0
}

func (n *node) start() {
	n.t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		n.t.Fatal("redis-server is needed: apt-get install -y --no-install-recommends redis-server")
	}
	n.cmd = exec.Command(program, n.args...)
	log, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(n.t, err)
	n.cmd.Stdout, n.cmd.Stderr = log, log
	endWithUs(n.cmd)
	must(n.t, n.cmd.Start())
	must(n.t, log.Close())
	wait(n.t, "redis-server listens on "+n.addr(), func() bool {
		c, err := net.Dial("tcp", n.addr())
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// kill ends the process with SIGKILL; it may be started again.
func (n *node) kill() {
	if n.cmd != nil && n.cmd.Process != nil {
		_ = n.cmd.Process.Kill()
		_ = n.cmd.Wait()
		n.cmd = nil
	}
}

func (n *node) addr() string { return fmt.Sprintf("127.0.0.1:%d", n.port) }

func (n *node) url() string { return "redis://" + n.addr() }

func (n *node) client() *goredis.Client { return client(n.t, n.url()) }

// wait polls until ok, for at most 30 seconds.
func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within 30s: %s", what)
		}
	}
}

// linkUp says that a replica follows its master.
func (n *node) linkUp() bool {
	info, err := n.client().Info(n.t.Context(), "replication").Result()
	return err == nil && strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up")
}

// cluster is three masters, then their replicas in the same order.
type cluster struct {
	t     *testing.T
	nodes []*node
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t}
	for range 6 {
		c.nodes = append(c.nodes, startNode(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
			"--cluster-node-timeout", "2000", "--cluster-replica-validity-factor", "0"))
	}
	ctx := t.Context()
	ids := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		r := n.client()
		ids[i] = r.ClusterMyID(ctx).Val()
		must(t, r.Do(ctx, "cluster", "set-config-epoch", i+1).Err())
		if i < 3 {
			must(t, r.ClusterAddSlotsRange(ctx, i*16384/3, (i+1)*16384/3-1).Err())
		}
		if i > 0 {
			must(t, r.ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(c.nodes[0].port)).Err())
		}
	}
	for i := 3; i < 6; i++ {
		r := c.nodes[i].client()
		wait(t, "the nodes know each other", func() bool { return r.ClusterReplicate(ctx, ids[i-3]).Err() == nil })
	}
	for i, n := range c.nodes {
		wait(t, "the cluster is complete", func() bool {
			info, err := n.client().ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:6") &&
				(i < 3 || n.linkUp())
		})
	}
	return c
}

func (c *cluster) url() string {
	addrs := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addrs[i] = n.addr()
	}
	return "redis-cluster://" + strings.Join(addrs, ",")
}

// client is a plain connection to the cluster.
func (c *cluster) client() *goredis.ClusterClient {
	r := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{c.nodes[0].addr(), c.nodes[1].addr(), c.nodes[2].addr()}})
	c.t.Cleanup(func() { _ = r.Close() })
	return r
}

// sentinels watch over a master and its replica.
type sentinels struct {
	t               *testing.T
	master, replica *node
	nodes           []*node
}

func startSentinels(t *testing.T) *sentinels {
	t.Helper()
	s := &sentinels{t: t, master: startNode(t)}
	s.replica = startNode(t, "--replicaof", fmt.Sprintf("127.0.0.1 %d", s.master.port))
	wait(t, "the replica follows", s.replica.linkUp)
	for range 3 {
		n := newNode(t)
		conf := filepath.Join(n.dir, "sentinel.conf")
		must(t, os.WriteFile(conf, fmt.Appendf(nil, "port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor m 127.0.0.1 %d 2\n"+
			"sentinel down-after-milliseconds m 1000\nsentinel failover-timeout m 5000\n", n.port, n.dir, s.master.port), 0o600))
		n.args = []string{conf, "--sentinel"}
		n.start()
		s.nodes = append(s.nodes, n)
	}
	for _, n := range s.nodes {
		wait(t, "the sentinels know all", func() bool {
			info, err := n.client().Info(t.Context(), "sentinel").Result()
			return err == nil && strings.Contains(info, "slaves=1,sentinels=3")
		})
	}
	return s
}

func (s *sentinels) url(db int) string {
	addrs := make([]string, len(s.nodes))
	for i, n := range s.nodes {
		addrs[i] = n.addr()
	}
	return fmt.Sprintf("redis-sentinel://%s/m/%d", strings.Join(addrs, ","), db)
}
