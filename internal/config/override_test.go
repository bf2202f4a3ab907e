package config_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
)

const overridden = `store: { kind: redis, redis: "${REDIS_URL}" }
broker: { kind: rabbitmq, url: [ "${AMQP}", amqp://b ] }
sources:
  stripe: { provider: stripe, secrets: [ "${SECRET}" ], retention: 40d }
  legacy: { verify: none, type: { from: "json:a", map: { x: y } } }
consumers:
  g: { match: [ "#", "a.b" ], effects: [ { name: e, sql: "delete from t" }, { name: f, sql: "delete from t" } ] }
`

func TestSet(t *testing.T) {
	cfg := mustLoad(t, overridden, config.Options{Set: []string{
		"store.redis=redis://h/1",
		"broker.url=amqp://c",
		"sources.stripe.secrets=[ \"${S}\", two ]",
		"sources.stripe.path=/x",
		"sources.new.verify=none",
		"sources.legacy.type.map.order.paid=done",
		"sources.legacy.respond={ status: 202 }",
		"consumers.g.match=[ legacy.# ]",
		"consumers.g.effects=[ { name: only, sql: 'insert into t values (:a)', params: { a: key } } ]",
		"shutdown_timeout=1s",
		"shutdown_timeout=2s",
		"inbox.schema=",
	}, Getenv: env("S", "one")})
	stripe, legacy, g := cfg.Sources["stripe"], cfg.Sources["legacy"], cfg.Consumers["g"]
	for _, tt := range []struct {
		name      string
		got, want any
	}{
		{"redis", cfg.Store.Redis.Reveal(), "redis://h/1"},
		{"kept kind", cfg.Store.Kind, "redis"},
		{"url", cfg.Broker.URL, config.SecretList{"amqp://c"}},
		{"secrets", stripe.Secrets, []config.SourceSecret{{Secret: "one"}, {Secret: "two"}}},
		{"path", stripe.Path, "/x"},
		{"kept retention", stripe.Retention, 40 * 24 * time.Hour},
		{"new source", cfg.Sources["new"].Verify.Scheme, "none"},
		{"map", legacy.Type.Map, map[string]string{"x": "y", "order.paid": "done"}},
		{"status", legacy.Respond.Status, 202},
		{"list", g.Match, []string{"legacy.#"}},
		{"effects", len(g.Effects), 1},
		{"last wins", cfg.ShutdownTimeout, 2 * time.Second},
		{"empty is default", cfg.Inbox.Schema, "hookonce"},
	} {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("%s: got %#v, want %#v", tt.name, tt.got, tt.want)
		}
	}
}

// TestSetForms: a plain form of type and verify replaces the long one, and back.
func TestSetForms(t *testing.T) {
	cfg := mustLoad(t, overridden, config.Options{Set: []string{
		"store.redis=redis://h", "broker.url=amqp://c", "sources.stripe.secrets=[s]",
		"sources.legacy.type==order.paid",
		"sources.stripe.verify.tolerance=1m",
	}})
	if got := cfg.Sources["legacy"].Type; got.From != "=order.paid" || got.Map != nil {
		t.Errorf("got %+v", got)
	}
	if got := cfg.Sources["stripe"].Verify.Tolerance; got != time.Minute {
		t.Errorf("got %v", got)
	}
}

func TestSetProblems(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := config.Load(config.Options{Getenv: env(), Set: []string{
		"store.kind",
		"=x",
		"store.knid=redis",
		"sources.a.verfy=none",
		"data_dir.x=1",
		"sources.a.key.0=body",
		"store=[ 1",
		"store=redis",
		"store.lease=soon",
		"admin.token=${NONE}",
		"consumers.g.effects[0].name=x",
	}})
	wantProblems(t, err,
		`--set: "store.kind" is not path=value: write it like`,
		`--set: "" is not path=value`,
		"--set: store.knid: is not a known name: did you mean kind?",
		"--set: sources.a.verfy: is not a known name: did you mean verify?",
		`--set: data_dir: has no part "x": it is a plain value`,
		"--set: sources.a.key: lists are replaced whole: use --set 'sources.a.key=[ … ]'",
		"--set: store: is not YAML: ",
		"--set: store: wants a mapping",
		`--set: store.lease: "soon" is not a duration`,
		"--set: admin.token: the environment variable NONE is not set",
		"--set: consumers.g.effects: lists are replaced whole",
		"--set: sources.a.secrets: no secret",
		"--set: consumers.g.match: says nothing",
	)
}
