package load_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hookonce/hookonce/internal/testenv/server"
)

// row is one line of the table.
type row struct {
	name   string
	policy string // what is on the disk when a request is answered
	set    setup
	// duplicates sends keys that are known; confirmed counts until the outbox is
	// empty; half sends at half of the confirmed rate of the row that halfOf names.
	duplicates, confirmed bool
	halfOf                string
}

// The stores with their fsync policies.
var stores = []struct{ name, policy, store, fsync string }{
	{"redis everysec", "appendfsync everysec", "redis", "everysec"},
	{"redis always", "appendfsync always", "redis", "always"},
	{"sqlite", "WAL, synchronous FULL", "sqlite", ""},
	{"postgres", "fsync, synchronous_commit on", "postgres", ""},
	{"hybrid", "as postgres; marks: everysec", "hybrid", "everysec"},
}

const (
	bareName  = "bare gin"
	wholeName = "whole path: redis everysec"
)

// rows are the table's lines that are wanted; the first is the bare handler.
func rows(want func(row) bool) []row {
	list := []row{
		{name: bareName, policy: "-", set: setup{Kind: "bare"}},
		{name: "gin + HMAC", policy: "-", set: setup{Kind: "hmac"}},
	}
	for _, s := range stores {
		list = append(list, row{
			name: "claim + outbox: " + s.name, policy: s.policy, set: setup{Kind: "receiver", Store: s.store, Fsync: s.fsync},
		})
	}
	for _, s := range stores {
		list = append(list, row{
			name: "duplicates: " + s.name, policy: s.policy, duplicates: true,
			// Only what RabbitMQ has confirmed gets a mark.
			set: setup{Kind: "receiver", Store: s.store, Fsync: s.fsync, Broker: s.store == "hybrid"},
		})
	}
	for _, s := range stores {
		list = append(list, row{
			name: "whole path: " + s.name, policy: "to the confirm, quorum queue", confirmed: true,
			set: setup{Kind: "receiver", Store: s.store, Fsync: s.fsync, Broker: true},
		})
	}
	usual := setup{Kind: "usual", Fsync: "everysec", Broker: true}
	list = append(list,
		row{name: "the usual code", policy: "SETNX, locked publish", set: usual, confirmed: true},
		row{name: "half load: " + bareName, policy: "-", set: setup{Kind: "bare"}, halfOf: wholeName},
		row{
			name: "half load: redis everysec", policy: "quorum queue", halfOf: wholeName,
			set: setup{Kind: "receiver", Store: "redis", Fsync: "everysec", Broker: true},
		})
	wanted := list[:1:1]
	for _, r := range list[1:] {
		if want(r) {
			wanted = append(wanted, r)
		}
	}
	return wanted
}

// servers are the private processes that the rows need.
type servers struct {
	redis, postgres, rabbit *server.Server
	dir                     string
	n                       int
}

func startServers(ctx context.Context, rows []row) (*servers, error) {
	dir, err := os.MkdirTemp("", "hookonce-load-")
	if err != nil {
		return nil, err
	}
	s := &servers{dir: dir}
	for _, r := range rows {
		if r.set.Store == "redis" || r.set.Store == "hybrid" || r.set.Kind == "usual" {
			err = errors.Join(err, start(ctx, &s.redis, server.Redis))
		}
		if r.set.Store == "postgres" || r.set.Store == "hybrid" {
			err = errors.Join(err, start(ctx, &s.postgres, server.Postgres))
		}
		if r.set.Broker {
			err = errors.Join(err, start(ctx, &s.rabbit, server.RabbitMQ))
		}
		if err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func start(ctx context.Context, s **server.Server, kind server.Kind) (err error) {
	if *s == nil {
		*s, err = server.Private(ctx, kind)
	}
	return err
}

func (s *servers) close() {
	for _, one := range []*server.Server{s.redis, s.postgres, s.rabbit} {
		if one != nil {
			_ = one.Close() // a private process and its temporary folder
		}
	}
	_ = os.RemoveAll(s.dir)
}

// complete fills in where the servers are, and gives the row a folder of its own.
func (s *servers) complete(set setup) (setup, error) {
	for _, x := range []struct {
		to   *string
		from *server.Server
	}{{&set.Redis, s.redis}, {&set.Postgres, s.postgres}, {&set.AMQP, s.rabbit}} {
		if x.from != nil {
			*x.to = x.from.URL
		}
	}
	if set.Keep {
		return set, nil
	}
	s.n++
	set.Dir = filepath.Join(s.dir, fmt.Sprint(s.n))
	return set, os.Mkdir(set.Dir, 0o700)
}
