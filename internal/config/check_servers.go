package config

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// minLease leaves a renewal, at a third of it, time to be late.
const minLease = time.Second

func (k *checker) lease(path string, lease, ttl time.Duration, ttlPath string) {
	if lease < minLease || lease > time.Hour {
		k.bad(path, "%s must be between 1s and 1h: what a dead process held is taken over only when its lease has ended", lease)
	}
	if ttl < lease {
		k.bad(ttlPath, "%s is shorter than %s: keep it longer than senders repeat, like 45d", formatDuration(ttl), path)
	}
}

func (k *checker) store() {
	s := k.c.Store
	k.oneOf("store.kind", s.Kind, SQLite, Postgres, Redis, Hybrid)
	k.redis(s)
	if s.RedisWait < 0 {
		k.bad("store.redis_wait", "is a number of replicas: 0 waits for none")
	}
	if s.RedisWait > 0 && s.Kind != Redis {
		k.warn("store.redis_wait", "is not used, as store.kind is %s: claims are made elsewhere", s.Kind)
	}
	k.adopt(s)
	switch {
	case s.Postgres != "":
		k.postgres("store.postgres", s.Postgres)
	case (s.Kind == Postgres || s.Kind == Hybrid) && k.role != ConsumerRole:
		k.bad("store.postgres", "store kind %s needs the database: postgres: postgres://hookonce@127.0.0.1/hookonce", s.Kind)
	}
	k.schema("store.schema", s.Schema)
	k.lease("store.lease", s.Lease, s.ClaimTTL, "store.claim_ttl")
	k.atLeast("store.max_outbox", s.MaxOutbox, 1)
	k.atLeast("store.max_outbox_bytes", int64(s.MaxOutboxBytes), 1)
}

func (k *checker) broker() {
	b := k.c.Broker
	if !k.oneOf("broker.kind", b.Kind, Embedded, RabbitMQ) {
		return
	}
	k.oneOf("broker.topology", b.Topology, "declare", "verify", "assume")
	for i, u := range b.URL {
		path := indexed("broker.url", i)
		if len(b.URL) == 1 {
			path = "broker.url"
		}
		k.address(path, u, "amqp", "amqps")
	}
	k.brokerTLS(b)
	if b.Kind == RabbitMQ {
		if len(b.URL) == 0 {
			k.bad("broker.url", "broker kind rabbitmq needs the server's address: url: amqp://user:password@host:5672/")
		}
		return
	}
	if len(b.URL) > 0 {
		k.warn("broker.url", "is not used, as broker.kind is embedded: set kind: rabbitmq to use it")
	}
	k.embedded()
}

// brokerTLS wants a certificate with its key, and a connection that uses them.
func (k *checker) brokerTLS(b Broker) {
	if (b.TLS.Cert == "") != (b.TLS.Key == "") {
		k.bad("broker.tls", "cert and key belong together: name both files, or neither")
	}
	secured := slices.ContainsFunc(b.URL, func(u Secret) bool { return strings.HasPrefix(u.Reveal(), "amqps://") })
	if b.TLS != (BrokerTLS{}) && len(b.URL) > 0 && !secured {
		k.bad("broker.tls", "is for encrypted connections: begin broker.url with amqps://, or leave tls out")
	}
}

// embedded is the combination that lives in one process on SQLite.
func (k *checker) embedded() {
	const rule = "broker kind embedded keeps its queues in the SQLite file of one process: "
	if k.role == ReceiverRole || k.role == ConsumerRole {
		k.bad("broker.kind", rule+"run \"hookonce serve\", or set broker.kind: rabbitmq with its url to run a %s alone", k.role)
	}
	if k.c.Store.Kind == Redis {
		k.bad("broker.kind", rule+"with store kind redis set broker.kind: rabbitmq, or use store kind sqlite")
	}
	if k.c.Inbox.Kind == Postgres && k.role != ReceiverRole {
		k.bad("broker.kind", rule+"with inbox kind postgres set broker.kind: rabbitmq, or use inbox kind sqlite")
	}
}

func (k *checker) inbox() {
	in := k.c.Inbox
	k.oneOf("inbox.kind", in.Kind, SQLite, Postgres)
	if in.Postgres != "" {
		k.postgres("inbox.postgres", in.Postgres)
	} else if in.Kind == Postgres && k.role != ReceiverRole {
		k.bad("inbox.postgres", "inbox kind postgres needs the database of your own tables: postgres: postgres://user:password@host/database")
	}
	if in.Kind == SQLite && filepath.Clean(in.SQLite) == filepath.Join(k.c.DataDir, "hookonce.db") {
		k.bad("inbox.sqlite", "is the file of the store: give your own tables another one, like %s", filepath.Join(k.c.DataDir, "inbox.db"))
	}
	k.schema("inbox.schema", in.Schema)
	k.lease("inbox.lease", in.Lease, in.TTL, "inbox.ttl")
}

func (k *checker) audit() {
	a := k.c.Audit
	k.oneOf("audit.kind", a.Kind, SQLite, Postgres, None)
	if a.Kind == Postgres && a.DSN != "" {
		k.postgres("audit.dsn", a.DSN)
	}
	k.positive("audit.retention", a.Retention)
}

// postgres wants a connection URL, or the form "host=… dbname=…". It never
// shows the value.
func (k *checker) postgres(path string, dsn Secret) {
	text := dsn.Reveal()
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
			k.bad(path, "is not a URL that begins with postgres:// (or it has characters that need percent-escapes)")
		}
		return
	}
	if first, _, ok := strings.Cut(text, "="); !ok || !schemaRule.MatchString(strings.TrimSpace(first)) {
		k.bad(path, "is not a Postgres address: write postgres://user:password@host/database or \"host=… dbname=…\"")
	}
}
