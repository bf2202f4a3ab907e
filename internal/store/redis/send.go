package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// request is one command or script call, and its answer.
type request struct {
	key    string  // decides the node, in a cluster
	script *script // nil: a plain command
	args   []any   // the whole command, as it is sent

	value any   // the answer; nil: none
	err   error // the command's own, or that of its node

	from   string // the node that was asked last
	addr   string // where it has sent us; empty: the slot's own node
	asking bool   // for this once: the slot is moving there
	cmd    *redis.Cmd
}

// command is a plain command on the node of key.
func command(key string, args ...any) *request { return &request{key: key, args: args} }

// call is a script call on the node of its first key.
func (sc *script) call(keys []string, args ...any) *request {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, "evalsha", sc.hash, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	return &request{key: keys[0], script: sc, args: append(all, args...)}
}

// maxTries is for a script that is unknown where a moved slot has led us, and
// one more redirection.
const maxTries = 5

// send carries out requests: those of one node in one pipeline on one
// connection, nodes at the same time. With wait, each pipeline ends with a
// WAIT, and what did not reach enough replicas has an error.
//
// Nothing is sent again that may have been carried out. A node that answers
// MOVED, ASK or NOSCRIPT has done nothing.
func (s *Store) send(ctx context.Context, wait bool, reqs ...*request) {
	for range maxTries {
		byNode := map[*redis.Client][]*request{}
		for _, r := range reqs {
			node, err := s.nodes.of(ctx, r)
			if r.err = err; err == nil {
				byNode[node] = append(byNode[node], r)
			}
		}
		var wg sync.WaitGroup
		for node, group := range byNode {
			if len(byNode) == 1 {
				s.pipeline(ctx, node, wait, group)
				break
			}
			wg.Go(func() { s.pipeline(ctx, node, wait, group) })
		}
		wg.Wait()
		again := reqs[:0:0]
		for _, r := range reqs {
			if r.err != nil && r.redirected() {
				again = append(again, r)
			}
		}
		if reqs = again; len(reqs) == 0 {
			return
		}
		s.nodes.reload(ctx)
	}
}

// errTooFew says that a write is where it belongs, and not yet safe there.
var errTooFew = errors.New("fewer replicas than redis_wait have it")

// pipeline sends requests to their node.
func (s *Store) pipeline(ctx context.Context, node *redis.Client, wait bool, group []*request) {
	p := node.Pipeline()
	for _, r := range group {
		if r.asking {
			p.Do(ctx, "asking")
		}
		r.from, r.cmd = node.Options().Addr, p.Do(ctx, r.args...)
	}
	var waited *redis.Cmd
	if wait {
		waited = p.Do(ctx, "wait", s.o.Wait, s.o.WaitTimeout.Milliseconds())
	}
	cmds, err := p.Exec(ctx)
	if err != nil && !isAnswer(err) {
		s.nodes.reload(ctx) // the node may have a successor
	}
	// The library does not tell the commands when there was no connection.
	if slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Err() != nil }) {
		err = nil
	}
	var missed error
	if wait {
		if have, err := waited.Int64(); err != nil {
			missed = err
		} else if have < int64(s.o.Wait) {
			missed = fmt.Errorf("%w: %d of %d within %v", errTooFew, have, s.o.Wait, s.o.WaitTimeout)
		}
	}
	for _, r := range group {
		if r.value, r.err = r.cmd.Result(); err != nil {
			r.err = err
		}
		if errors.Is(r.err, redis.Nil) {
			r.err = nil
		}
		if r.err == nil {
			r.err = missed
		}
	}
}

// isAnswer says that an error is what a server answered.
func isAnswer(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// redirected says that the request was not carried out, and readies it for
// where it should go.
func (r *request) redirected() bool {
	if !isAnswer(r.err) {
		return false
	}
	text := r.err.Error()
	switch fields := strings.Fields(text); {
	case strings.HasPrefix(text, "NOSCRIPT") && r.script != nil && r.args[0] == "evalsha":
		r.args[0], r.args[1] = "eval", r.script.source
		return true
	case len(fields) == 3 && (fields[0] == "MOVED" || fields[0] == "ASK"):
		r.addr, r.asking = fields[2], fields[0] == "ASK"
		if strings.HasPrefix(r.addr, ":") { // the same host
			host, _, _ := net.SplitHostPort(r.from)
			r.addr = net.JoinHostPort(host, r.addr[1:])
		}
		return true
	}
	return false
}
