package config_test

import (
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/config"
)

const (
	split = "store: { kind: redis, redis: redis://127.0.0.1/0 }\nbroker: { kind: rabbitmq, url: amqp://127.0.0.1 }\ninbox: { kind: postgres, postgres: postgres://h/d }\n"
	some  = "sources: { a: { verify: none } }\n"
)

// rule is one configuration and the problems it must give, none for a valid one.
type rule struct {
	name, text string
	role       config.Role
	want       []string
}

func runRules(t *testing.T, rules []rule) {
	t.Helper()
	for _, tt := range rules {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.text, config.Options{Role: tt.role})
			if len(tt.want) > 0 {
				wantProblems(t, err, tt.want...)
			} else if err != nil {
				t.Fatalf("unexpected problems:\n%v", err)
			}
		})
	}
}

func TestCombinations(t *testing.T) {
	runRules(t, []rule{
		{"all embedded", some, config.Serve, nil},
		{"operator on embedded", some, config.Operator, nil},
		{"receiver on embedded", some, config.ReceiverRole, []string{`h.yaml:1: broker.kind: broker kind embedded … run "hookonce serve", or set broker.kind: rabbitmq`}},
		{"consumer on embedded", some, config.ConsumerRole, []string{"h.yaml:1: broker.kind: … to run a consumer alone"}},
		{"embedded with redis", "store: { kind: redis, redis: redis://h }\n", config.Serve, []string{"h.yaml:1: broker.kind: … with store kind redis set broker.kind: rabbitmq"}},
		{"embedded with postgres", "inbox: { kind: postgres, postgres: postgres://h/d }\n", config.Serve, []string{"h.yaml:1: broker.kind: … with inbox kind postgres"}},
		{"split, serve", split, config.Serve, nil},
		{"split, receiver", split, config.ReceiverRole, nil},
		{"split, consumer", split, config.ConsumerRole, nil},
		{"sqlite store with rabbitmq", "broker: { kind: rabbitmq, url: amqp://h }\n", config.ReceiverRole, nil},
		{"sqlite inbox with rabbitmq", "broker: { kind: rabbitmq, url: amqp://h }\n", config.ConsumerRole, nil},
		{"redis without address", "store:\n  kind: redis\nbroker: { kind: rabbitmq, url: amqp://h }\n", config.ReceiverRole, []string{"h.yaml:1: store.redis: store kind redis needs"}},
		{"consumer without redis address", "store:\n  kind: redis\nbroker: { kind: rabbitmq, url: amqp://h }\n", config.ConsumerRole, nil},
		{"postgres without address", "broker: { kind: rabbitmq, url: amqp://h }\ninbox: { kind: postgres }\n", config.ConsumerRole, []string{"h.yaml:2: inbox.postgres: inbox kind postgres needs"}},
		{"receiver without inbox address", "broker: { kind: rabbitmq, url: amqp://h }\ninbox: { kind: postgres }\n", config.ReceiverRole, nil},
		{"rabbitmq without address", "broker:\n  kind: rabbitmq\n", config.Serve, []string{"h.yaml:1: broker.url: broker kind rabbitmq needs"}},
		{"several brokers", "broker:\n  kind: rabbitmq\n  url:\n    - amqp://h\n    - http://h\n", config.Serve, []string{"h.yaml:5: broker.url[1]: is not a URL that begins with amqp:// or amqps://"}},
		{"sentinel", "store: { kind: redis, redis: 'redis-sentinel://u:p@h,i:26379/m/1', redis_wait: 2 }\nbroker: { kind: rabbitmq, url: amqp://h }\n", config.ReceiverRole, nil},
		{"sentinel without master", "store: { kind: redis, redis: redis-sentinel://h }\nbroker: { kind: rabbitmq, url: amqp://h }\n", config.Serve, []string{"h.yaml:1: store.redis: names no master: write redis-sentinel://"}},
		{"cluster", "store: { kind: redis, redis: 'rediss-cluster://u:p@h:7000,[::1]:7001' }\nbroker: { kind: rabbitmq, url: amqp://h }\n", config.ReceiverRole, nil},
		{"cluster hosts", "store: { kind: redis, redis: 'redis-cluster://h,:7001,' }\nbroker: { kind: rabbitmq, url: amqp://h }\n", config.Serve, []string{"h.yaml:1: store.redis: is not a list of hosts"}},
		{"redis_wait", "store: { kind: redis, redis: redis://h, redis_wait: -1 }\nbroker: { kind: rabbitmq, url: amqp://h }\n", config.Serve, []string{"h.yaml:1: store.redis_wait: is a number of replicas"}},
		{"adopt", "store: { kind: redis, redis: redis://h, adopt: { orders: { kind: redis, prefix: 'idem:orders:', final: [ done ] } } }\nbroker: { kind: rabbitmq, url: amqp://h }\nsources:\n  orders: { verify: none, key: [ 'header:X-Id' ] }\n", config.ReceiverRole, nil},
		{"adopt hashes", "store: { kind: redis, redis: redis://h, adopt: { orders: { kind: redis, prefix: 'idem:orders:' } } }\nbroker: { kind: rabbitmq, url: amqp://h }\nsources:\n  orders: { verify: none, key: [ 'header:X-Id' ], previous_keys: [ 'body:stringify' ] }\n", config.ReceiverRole, nil},
		{"adopt rows", "store: { kind: hybrid, redis: redis://h, postgres: postgres://h/d, adopt: { orders: { kind: postgres, final: [ completed ] } } }\nbroker: { kind: rabbitmq, url: amqp://h }\nsources:\n  orders: { verify: none, key: [ 'header:X-Id' ] }\n", config.ReceiverRole, nil},
		{"adopt rows wrong", "store:\n  kind: postgres\n  postgres: postgres://h/d\n  adopt: { orders: { kind: postgres, table: 'a;b', prefix: x }, more: { kind: redis, prefix: x, table: t } }\nbroker: { kind: rabbitmq, url: amqp://h }\nsources:\n  orders: { verify: none, key: [ 'header:X-Id' ], on_store_down: publish }\n  more: { verify: none, key: [ 'header:X-Id' ] }\n", config.ReceiverRole, []string{
			"h.yaml:4: store.adopt.more.kind: … store kind redis only", "h.yaml:4: store.adopt.more.table: is for rows in Postgres",
			"h.yaml:4: store.adopt.orders.prefix: is for Redis keys", "h.yaml:4: store.adopt.orders.table: \"a;b\" cannot be a table's name", "h.yaml:4: store.adopt.orders.final: is needed",
			"h.yaml:7: sources.orders.on_store_down: publish does not go with store.adopt",
		}},
		{"an old hash as key", "sources:\n  orders:\n    verify: none\n    key: [ 'body:stringify' ]\n", config.Serve, []string{"h.yaml:4: sources.orders.key[0]: is for previous_keys"}},
		{"adopt nothing", "store:\n  kind: redis\n  redis: redis://h\n  adopt: { order: { kind: sqlite } }\nbroker: { kind: rabbitmq, url: amqp://h }\nsources:\n  orders: { verify: none, key: [ 'header:X-Id' ] }\n", config.ReceiverRole, []string{
			`h.yaml:4: store.adopt.order: there is no source "order"`, `h.yaml:4: store.adopt.order.kind: "sqlite" is not known here`,
		}},
		{"adopt elsewhere", "store:\n  adopt: { orders: { kind: redis, prefix: 'x:' } }\nbroker: { kind: rabbitmq, url: amqp://h }\nsources:\n  orders: { verify: none, key: [ 'header:X-Id' ] }\n", config.ReceiverRole, []string{"h.yaml:2: store.adopt.orders.kind: … store kind redis only"}},
		{"adopt signatures", "store:\n  kind: redis\n  redis: redis://h\n  adopt: { orders: { kind: redis, prefix: 'x:' } }\nbroker: { kind: rabbitmq, url: amqp://h }\nsources:\n  orders: { verify: none, key: [ 'header:X-Id' ], previous_keys: [ 'header:Stripe-Signature' ] }\n", config.ReceiverRole, []string{"h.yaml:4: store.adopt.orders: keys made from the header Stripe-Signature"}},
		{"redis scheme", "store: { kind: redis, redis: http://h }\nbroker: { kind: rabbitmq, url: amqp://h }\n", config.Serve, []string{"h.yaml:1: store.redis: is not a URL that begins with redis:// or rediss://"}},
		{"redis host", "store: { redis: redis:///0 }\n", config.Serve, []string{"h.yaml:1: store.redis: names no host"}},
		{"postgres words", "inbox: { postgres: host=h dbname=d }\n", config.Serve, nil},
		{"postgres scheme", "inbox: { postgres: mysql://h/d }\n", config.Serve, []string{"h.yaml:1: inbox.postgres: is not a URL that begins with postgres://"}},
		{"postgres nonsense", "inbox: { postgres: shop }\n", config.Serve, []string{"h.yaml:1: inbox.postgres: is not a Postgres address"}},
		{"one file for both", "inbox:\n  sqlite: ./hookonce-data/./hookonce.db\n", config.Serve, []string{"h.yaml:2: inbox.sqlite: is the file of the store"}},
		{"schema", "inbox: { schema: a-b }\n", config.Serve, []string{`h.yaml:1: inbox.schema: "a-b" cannot be a schema's name`}},
		{"ttl below lease", "inbox: { ttl: 5s }\n", config.Serve, []string{"h.yaml:1: inbox.ttl: 5s is shorter than inbox.lease"}},
		{"lease", "inbox: { lease: 100ms }\n", config.Serve, []string{"h.yaml:1: inbox.lease: 100ms must be between 1s and 1h"}},
		{"audit", "audit: { kind: mysql, retention: 0s }\n", config.Serve, []string{"h.yaml:1: audit.kind: ", "h.yaml:1: audit.retention: must be more than 0"}},
		{"audit is accepted", "audit: { kind: postgres, dsn: postgres://h/d, retention: 90d }\n", config.Serve, nil},
		{"topologies", strings.Replace(split, "url:", "topology: assume, url:", 1), config.Serve, nil},
	})
}

func TestListeners(t *testing.T) {
	const rabbit = "broker: { kind: rabbitmq, url: amqp://h }\n"
	runRules(t, []rule{
		{"demo off loopback", "receiver:\n  listen: :8080\n", config.Serve, []string{"h.yaml:2: receiver.listen: :8080 would offer the demo source"}},
		{"demo off loopback, receiver", rabbit + "receiver: { listen: 0.0.0.0:80 }\n", config.ReceiverRole, []string{"h.yaml:2: receiver.listen: 0.0.0.0:80 would offer the demo source"}},
		{"demo off loopback, consumer", rabbit + "receiver: { listen: 0.0.0.0:80 }\n", config.ConsumerRole, nil},
		{"unsigned source off loopback", some + "receiver: { listen: :8080 }\n", config.Serve, nil},
		{"admin off loopback", some + "admin: { listen: 0.0.0.0:8081 }\n", config.Serve, []string{"h.yaml:2: admin.listen: 0.0.0.0:8081 can be reached from other machines and has no token"}},
		{"admin off loopback with token", some + "admin: { listen: 0.0.0.0:8081, token: t }\n", config.Serve, nil},
		{"admin off loopback, receiver", rabbit + some + "admin: { listen: 0.0.0.0:8081 }\n", config.ReceiverRole, nil},
		{"admin nonsense, operator", some + "admin: { listen: nonsense }\n", config.Operator, nil},
		{"admin_listen nonsense, serve", some + "receiver: { admin_listen: nonsense }\n", config.Serve, nil},
		{"admin_listen nonsense, receiver", rabbit + some + "receiver: { admin_listen: nonsense }\n", config.ReceiverRole, []string{`h.yaml:3: receiver.admin_listen: "nonsense" is not an address`}},
		{"port", some + "admin: { listen: 127.0.0.1:99999 }\n", config.Serve, []string{`h.yaml:2: admin.listen: "127.0.0.1:99999" is not an address`}},
		{"same port", some + "admin: { listen: 127.0.0.1:8080 }\n", config.Serve, []string{"h.yaml:2: admin.listen: 127.0.0.1:8080 is taken by receiver.listen"}},
		{"same port everywhere", some + "receiver: { listen: :8081 }\n", config.Serve, []string{"h.yaml:1: admin.listen: 127.0.0.1:8081 is taken by receiver.listen (:8081)"}},
		{"same port, receiver", rabbit + some + "receiver: { admin_listen: 127.0.0.1:8080 }\n", config.ReceiverRole, []string{"h.yaml:3: receiver.admin_listen: "}},
		{"both admins", rabbit + some + "receiver: { admin_listen: 127.0.0.1:8081 }\n", config.ReceiverRole, nil},
		{"free ports", some + "receiver: { listen: 127.0.0.1:0 }\nadmin: { listen: 127.0.0.1:0 }\n", config.Serve, nil},
		{"tls half", some + "receiver: { tls: { cert: a.pem } }\n", config.Serve, []string{"h.yaml:2: receiver.tls: needs both cert and key"}},
		{"public_url", some + "receiver: { public_url: hooks.example.com }\n", config.Serve, []string{"h.yaml:2: receiver.public_url: is not the start"}},
		{"proxies", some + "receiver: { trusted_proxies: [ 10.0.0.0/8, \"::1\", proxy ] }\n", config.Serve, []string{`h.yaml:2: receiver.trusted_proxies[2]: "proxy" is no address`}},
	})
}

func TestSources(t *testing.T) {
	source := func(fields string) string { return "sources:\n  a:\n    verify: none\n" + fields }
	runRules(t, []rule{
		{"name", "sources: { _x: { verify: none } }\n", 0, []string{`h.yaml:1: sources._x: "_x" cannot be a name`}},
		{"generic without secret", "sources:\n  a: {}\n", 0, []string{`h.yaml:2: sources.a.secrets: no secret … or verify: none`}},
		{"entry of nothing", "sources:\n  a:\n", 0, []string{`h.yaml:2: sources.a.secrets: no secret`}},
		{"stripe without secret", "sources:\n  a: { provider: stripe }\n", 0, []string{`h.yaml:2: sources.a.secrets: no secret`}},
		{"consumer needs no secret", split + "sources:\n  a: { provider: stripe }\n", config.ConsumerRole, nil},
		{"stripe with verify", "sources:\n  a: { provider: stripe, secrets: [ s ], verify: { header: X } }\n", 0, []string{"h.yaml:2: sources.a.verify: provider stripe has a verification of its own"}},
		{"stripe with tolerance", "sources:\n  a: { provider: stripe, secrets: [ s ], verify: { tolerance: 10m } }\n", 0, nil},
		{"scheme", "sources:\n  a: { secrets: [ s ], verify: { scheme: hmac-sha255, header: \"X Y\", encoding: hexx } }\n", 0, []string{`h.yaml:2: sources.a.verify.scheme: "hmac-sha255" is not known here: did you mean hmac-sha256?`}},
		{"verify parts", "sources:\n  a: { secrets: [ s ], verify: { header: \"X Y\", encoding: hexx } }\n", 0, []string{"h.yaml:2: sources.a.verify.header: ", `h.yaml:2: sources.a.verify.encoding: "hexx" … did you mean hex?`}},
		{"none with secrets", "sources:\n  a: { verify: none, secrets: [ s ] }\n", 0, []string{"h.yaml:2: sources.a.verify: none never uses the secrets"}},
		{"none with header", "sources:\n  a: { verify: { scheme: none, header: X } }\n", 0, []string{"h.yaml:2: sources.a.verify: scheme none has no header"}},
		{"status", source("    respond: { status: 302 }\n"), 0, []string{"h.yaml:4: sources.a.respond.status: 302 is not a success"}},
		{"204 with body", source("    respond: { status: 204, body: x }\n"), 0, []string{"h.yaml:4: sources.a.respond.body: an answer with status 204"}},
		{"words", source("    on_no_key: drop\n    unmatched: park\n    on_store_down: accept\n    on_changed_body: publish\n    ack: claims\n"), 0, []string{
			"h.yaml:4: sources.a.on_no_key: ", "h.yaml:5: sources.a.unmatched: ", "h.yaml:6: sources.a.on_store_down: ",
			"h.yaml:7: sources.a.on_changed_body: ", "h.yaml:8: sources.a.ack: … did you mean claim?",
		}},
		{"all words", source("    on_no_key: park\n    unmatched: drop\n    on_store_down: reject\n    on_changed_body: reject\n    ack: confirm\n"), 0, nil},
		{"keys", source("    key: [ \"header:\", \"json:\", \"json:{a\", \"json:{x}a}\", \"json:{a}:{b..c}\", \"json:{}\", id, \"jso:a\", key, \"header:X\", \"header:X\" ]\n"), 0, []string{
			"h.yaml:4: sources.a.key[0]: … names no header",
			`h.yaml:4: sources.a.key[1]: not a recipe: "json:"; write header:NAME`,
			"h.yaml:4: sources.a.key[2]: … a { without }",
			"h.yaml:4: sources.a.key[3]: … a } without {",
			"h.yaml:4: sources.a.key[4]: … not a JSON path",
			"h.yaml:4: sources.a.key[5]: … empty braces",
			`h.yaml:4: sources.a.key[6]: not a recipe: "id"; write header:NAME`,
			`h.yaml:4: sources.a.key[7]: not a recipe: "jso:a"; write header:NAME`,
			`h.yaml:4: sources.a.key[8]: "key" is no part of a request`,
			"h.yaml:4: sources.a.key[10]: … stands here twice",
		}},
		{"good keys", source("    key: [ \"header:X-Id\", \"json:a.0.b\", \"json:{a}:{b.c}-x\", body ]\n"), 0, nil},
		{"no keys", source("    key: []\n"), 0, []string{"h.yaml:4: sources.a.key: an empty list finds no key"}},
		{"window", source("    key: [ body ]\n    body: { window: 46d, ignore: [ a..b ] }\n"), 0, []string{
			"h.yaml:5: sources.a.body.window: must be more than 0 and at most",
			"h.yaml:5: sources.a.body.ignore: raw bytes have no paths",
			"h.yaml:5: sources.a.body.ignore[0]: not a JSON path",
		}},
		{"types", source("    type: =\n    entity: id\n    version: body\n"), 0, []string{
			`h.yaml:4: sources.a.type: "=" needs the type behind it`,
			`h.yaml:5: sources.a.entity: not a recipe: "id"`,
			"h.yaml:6: sources.a.version: a hash of the body",
		}},
		{"type map", source("    type: { map: { a: b, c: \"\" } }\n"), 0, []string{
			"h.yaml:4: sources.a.type: map needs from", "h.yaml:4: sources.a.type.map.c: maps to nothing",
		}},
		{"type from", source("    type:\n      from: a\n"), 0, []string{`h.yaml:5: sources.a.type.from: not a recipe: "a"`}},
		{"good type", source("    type: =order.paid\n    accept: [ order.*, \"#\" ]\n    keep_headers: [ X-Id ]\n"), 0, nil},
		{"accept", source("    accept: [ order., \"or*\" ]\n    keep_headers: [ \"X:Id\" ]\n"), 0, []string{
			`h.yaml:4: sources.a.accept[0]: "order." has an empty word`, "h.yaml:4: sources.a.accept[1]: not a topic pattern",
			"h.yaml:5: sources.a.keep_headers[0]: ",
		}},
		{"path", source("    path: hooks\n"), 0, []string{`h.yaml:4: sources.a.path: "hooks" is not a path: write one like /hooks/a`}},
		{"path, odd", source("    path: /hooks/:id\n"), 0, []string{`h.yaml:4: sources.a.path: "/hooks/:id" is not a path`}},
		{"path, up", source("    path: /hooks/../admin\n"), 0, []string{"h.yaml:4: sources.a.path: "}},
		{"path twice", source("    path: /hooks/b\n  b:\n    verify: none\n"), 0, []string{"h.yaml:5: sources.b.path: /hooks/b is the path of source a too (line 4)"}},
		{"retention", source("    retention: 0s\n"), 0, []string{"h.yaml:4: sources.a.retention: must be more than 0"}},
	})
}

func TestGroups(t *testing.T) {
	group := func(fields string) string { return "consumers:\n  g:\n    match: [ \"#\" ]\n" + fields }
	effect := func(fields string) string { return group("    effects:\n    - name: e\n" + fields) }
	runRules(t, []rule{
		{"name", "consumers: { G: { match: [ \"#\" ], effects: [ { name: e, sql: delete from t } ] } }\n", 0, []string{`h.yaml:1: consumers.G: "G" cannot be a name`}},
		{"name taken", "consumers: { unrouted: { match: [ \"#\" ], effects: [ { name: e, sql: delete from t } ] } }\n", 0, []string{"h.yaml:1: consumers.unrouted: hookonce.unrouted is the queue"}},
		{"nothing", "consumers:\n  g:\n", 0, []string{"h.yaml:2: consumers.g.match: says nothing", "h.yaml:2: consumers.g.effects: the group does nothing"}},
		{"numbers", effect("      sql: delete from t\n      timeout: 0s\n    concurrency: 0\n    prefetch: 70000\n    retry: { first: 10m, max: 1s, max_crashes: 0 }\n"), 0, []string{
			"h.yaml:7: consumers.g.effects[0].timeout: must be more than 0",
			"h.yaml:8: consumers.g.concurrency: 0 is too small",
			"h.yaml:9: consumers.g.prefetch: 70000 is too large",
			"h.yaml:10: consumers.g.retry.max_crashes: 0 is too small",
			"h.yaml:10: consumers.g.retry.max: 1s is shorter than first (10m0s)",
		}},
		{"effect without name", group("    effects: [ { sql: delete from t } ]\n"), 0, []string{"h.yaml:4: consumers.g.effects[0].name: the effect has no name"}},
		{"effect of nothing", group("    effects:\n    - name: e\n    -\n"), 0, []string{"h.yaml:5: consumers.g.effects[0]: the effect does nothing", "h.yaml:6: consumers.g.effects[1]: is empty"}},
		{"was", effect("      was: [ old, \"Old\" ]\n      sql: delete from t\n    - name: old\n      sql: delete from t\n"), 0, []string{
			`h.yaml:6: consumers.g.effects[0].was[1]: "Old" cannot be a name`,
			"h.yaml:8: consumers.g.effects[1].name: old is taken by consumers.g.effects[0].was[0] (line 6)",
		}},
		{"params", effect("      sql: insert into t values (:a, :b, :key, 'x :no' , a::text)\n      params:\n        a: json:a\n        c: key\n        b: \"$.b\"\n"), 0, []string{
			"h.yaml:6: consumers.g.effects[0].sql: :key is not among the params: add params: { key: key }",
			`h.yaml:9: consumers.g.effects[0].params.c: no :c in the sql`,
			`h.yaml:10: consumers.g.effects[0].params.b: "$.b" is not a value: write one of key, source, type, body, received_at`,
		}},
		{"every param", effect("      sql: [ \"insert into t values (:a, :b, :c, :d, :e)\", \"delete from t where a = :f and b = :g and c = :h\" ]\n" +
			"      params: { a: key, b: source, c: type, d: body, e: received_at, f: \"header:X\", g: \"json:a\", h: \"json:{a}:{b}\" }\n"), 0, nil},
		{"statements", effect("      sql: [ \"delete from t; delete from u\", \"delete from t where a = $1\", \"-- nothing\" ]\n"), 0, []string{
			"h.yaml:6: consumers.g.effects[0].sql[0]: has more than one statement",
			"h.yaml:6: consumers.g.effects[0].sql[1]: $1 is a numbered parameter",
			"h.yaml:6: consumers.g.effects[0].sql[2]: is empty",
		}},
		{"quotes", effect("      sql: \"select ':a', \\\":b\\\", $$ :c ; $$, $x$ :d $x$, 1::int /* :e ; */ where a = :f; -- :g\"\n      params: { f: key }\n"), 0, nil},
	})
}

func TestWarnings(t *testing.T) {
	cfg := mustLoad(t, `broker: { url: amqp://h }
sources:
  a:
    verify: none
    body: { canonical: true }
  b: { verify: { tolerance: 1m }, secrets: [ " s\t" ] }
consumers:
  g: { match: [ "c.#", "#", "a.x" ], concurrency: 100, effects: [ { name: e, sql: delete from t } ] }
`, config.Options{})
	want := []string{
		"h.yaml:6: sources.b.secrets[0]: white space around this secret was left out",
		"h.yaml:1: broker.url: is not used",
		"h.yaml:4: sources.a.verify: none: anyone who knows the URL",
		"h.yaml:5: sources.a.body: has no effect",
		"h.yaml:6: sources.b.verify.tolerance: has no effect",
		"h.yaml:8: consumers.g.match[0]: c.# wants events of source c",
		"h.yaml:8: consumers.g.concurrency: 100 is more than prefetch",
	}
	got := cfg.Warnings
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
			t.Fatalf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if cfg := mustLoad(t, some, config.Options{}); len(cfg.Warnings) != 2 {
		t.Errorf("got %q, want one about verify none and one about no consumers", cfg.Warnings)
	}
	if cfg := mustLoad(t, "", config.Options{}); len(cfg.Warnings) != 0 {
		t.Errorf("the first run warns: %q", cfg.Warnings)
	}
}

func TestLines(t *testing.T) {
	cfg := mustLoad(t, "\nsources:\n  a:\n    verify: none\n  b: { verify: none }\nconsumers:\n  g:\n    match: [ \"#\" ]\n    effects:\n      - name: x\n        sql: delete from t\n      -\n        name: y\n        sql: delete from t\n", config.Options{})
	g := cfg.Consumers["g"]
	got := []int{cfg.Sources["a"].Line, cfg.Sources["b"].Line, g.Line, g.Effects[0].Line, g.Effects[1].Line}
	for i, want := range []int{3, 5, 7, 10, 13} {
		if got[i] != want {
			t.Errorf("line %d: got %d, want %d", i, got[i], want)
		}
	}
	if cfg.Sources["a"].Name != "a" || g.Name != "g" {
		t.Error("names are not filled in")
	}
}

func TestValidate(t *testing.T) {
	cfg := mustLoad(t, some, config.Options{})
	if err := cfg.Validate(config.Serve); err != nil {
		t.Fatal(err)
	}
	cfg.Receiver.MaxBody = 0
	wantProblems(t, cfg.Validate(config.Serve), "configuration: receiver.max_body: must be")
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:80": true, "127.9.9.9:80": true, "[::1]:80": true, "localhost:80": true, "LOCALHOST:0": true, "[::ffff:127.0.0.1]:1": true,
		":80": false, "0.0.0.0:80": false, "[::]:80": false, "10.0.0.1:80": false, "example.com:80": false, "127.0.0.1": false, "": false,
	} {
		if got := config.Loopback(addr); got != want {
			t.Errorf("Loopback(%q) = %v", addr, got)
		}
	}
}
