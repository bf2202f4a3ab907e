package config_test

import (
	"testing"

	"github.com/hookonce/hookonce/internal/config"
)

// TestReading has one case for each kind of fault that reading can find.
func TestReading(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"syntax", "store:\n  kind: [ redis\n", []string{"h.yaml:2: is not YAML: "}},
		{"tab", "store:\n\tkind: redis\n", []string{"h.yaml:2: is not YAML: "}},
		{"indent", "a:\n  b: 1\n c: 2\n", []string{"h.yaml:3: is not YAML: "}},
		{"variable in flow", "broker:\n  url: [ ${A}, b ]\n", []string{"h.yaml:2: is not YAML: … needs quotes"}},
		{"two documents", "data_dir: a\n---\ndata_dir: b\n", []string{"h.yaml:3: a second document … remove the --- line"}},
		{"list at the top", "- a\n", []string{"h.yaml:1: wants a mapping … this is a list"}},
		{"text at the top", "hello\n", []string{"h.yaml:1: wants a mapping … this is a plain value"}},
		{"unknown name", "# c\nstore:\n  knid: redis\n", []string{"h.yaml:3: store.knid: is not a known name: did you mean kind?"}},
		{"unknown, far", "admin:\n  zzzzzzzz: 1\n", []string{"h.yaml:2: admin.zzzzzzzz: is not a known name: use one of listen, token"}},
		{"unknown top", "consumer: {}\n", []string{"h.yaml:1: consumer: is not a known name: did you mean consumers?"}},
		{"unknown, value below", "\nstoer:\n\n  kind: redis\n", []string{"h.yaml:2: stoer: … did you mean store?"}},
		{"twice", "store:\n  lease: 10s\n  lease: 11s\n", []string{"h.yaml:3: store.lease: stands here twice, first in line 2"}},
		{"not a number", "store:\n  max_outbox: many\n", []string{`h.yaml:2: store.max_outbox: "many" is not a whole number`}},
		{"fraction", "store:\n  max_outbox: 1.5\n", []string{`h.yaml:2: store.max_outbox: "1.5" is not a whole number`}},
		{"too large", "store:\n  max_outbox: 99999999999999999999\n", []string{`h.yaml:2: store.max_outbox: … is not a whole number`}},
		{"duration", "startup_timeout: 30\nshutdown_timeout: 2 weeks\n", []string{
			`h.yaml:1: startup_timeout: "30" is not a duration: write a number with a unit`,
			`h.yaml:2: shutdown_timeout: "2 weeks" is not a duration`,
		}},
		{"negative duration", "startup_timeout: -3s\n", []string{`h.yaml:1: startup_timeout: "-3s" is not a duration`}},
		{"size", "receiver:\n  max_body: 1MB\n", []string{`h.yaml:2: receiver.max_body: "1MB" is not a size: write 512KiB`}},
		{"list for text", "data_dir: [ a ]\n", []string{"h.yaml:1: data_dir: wants a plain value … this is a list"}},
		{"mapping for text", "data_dir:\n  a: b\n", []string{"h.yaml:2: data_dir: wants a plain value … this is a mapping"}},
		{"text for list", "receiver:\n  trusted_proxies: 10.0.0.1\n", []string{"h.yaml:2: receiver.trusted_proxies: wants a list"}},
		{"text for mapping", "store: redis\n", []string{"h.yaml:1: store: wants a mapping (name: value), but this is a plain value"}},
		{"list for mapping", "sources:\n  - a\n", []string{"h.yaml:2: sources: wants a mapping"}},
		{"verify word", "sources:\n  a:\n    verify: nnoe\n", []string{`h.yaml:3: sources.a.verify: "nnoe" is neither the plain word none nor`}},
		{"verify list", "sources:\n  a:\n    verify: [ none ]\n", []string{"h.yaml:3: sources.a.verify: wants a plain value"}},
		{"anchor", "store: &s\n  kind: sqlite\ninbox: *s\n", []string{
			"h.yaml:1: store: anchors (&name) and aliases",
			"h.yaml:3: inbox: anchors (&name) and aliases",
		}},
		{"merge", "store:\n  <<: {}\n", []string{"h.yaml:2: store: the merge key << is not read"}},
		{"tag", "data_dir: !!str 5\n", []string{"h.yaml:1: data_dir: tags (!name) are not read"}},
		{"odd key", "? a\n: b\n", []string{"h.yaml:1: this key is not a plain word"}},
		{"empty item", "receiver:\n  trusted_proxies:\n    - 10.0.0.1\n    - \"\"\n", []string{"h.yaml:4: receiver.trusted_proxies[1]: an empty text"}},
		{"bool", "sources:\n  a:\n    verify: none\n    key: [ body ]\n    body: { canonical: yep }\n", []string{`h.yaml:5: sources.a.body.canonical: "yep" is neither true nor false`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.text, config.Options{})
			wantProblems(t, err, tt.want...)
		})
	}
}

// TestAllAtOnce: many faults of different kinds are one answer, in the order of the lines.
func TestAllAtOnce(t *testing.T) {
	_, err := load(t, `data_dri: x
receiver:
  listen: nowhere
  max_body: 17MiB
store:
  kind: rediss
  lease: soon
  claim_ttl: 1s
  redis_wait: -1
broker:
  kind: rabbitmq
  topology: maybe
sources:
  Bad:
    verify: none
    key: [ "from:id", "json:a..b" ]
  stripe:
    provider: strip
    secrets: [ "${STRIPE_WHSEC}" ]
    path: /hooks/Bad
consumers:
  g:
    match: [ "orders.pre*" ]
    retry: { max_attempts: 0 }
    effects:
      - name: one
        sqll: x
      - name: one
        sql: insert into t values (:a)
`, config.Options{Set: []string{"admin.listen=0.0.0.0:1", "nope=1"}})
	wantProblems(t, err,
		"h.yaml:1: data_dri: is not a known name: did you mean data_dir?",
		`h.yaml:3: receiver.listen: "nowhere" is not an address`,
		"h.yaml:4: receiver.max_body: must be more than 0 and at most 16MiB",
		`h.yaml:6: store.kind: "rediss" is not known here: did you mean redis?`,
		`h.yaml:7: store.lease: "soon" is not a duration`,
		"h.yaml:9: store.redis_wait: is a number of replicas",
		"h.yaml:10: broker.url: broker kind rabbitmq needs",
		`h.yaml:12: broker.topology: "maybe" is not known here: use one of assume, declare, verify`,
		`h.yaml:14: sources.Bad: "Bad" cannot be a name`,
		"h.yaml:16: sources.Bad.key[0]: not a recipe: … write header:NAME",
		`h.yaml:16: sources.Bad.key[1]: … not a JSON path: "a..b"`,
		`h.yaml:18: sources.stripe.provider: "strip" is not known here: did you mean stripe?`,
		"h.yaml:19: sources.stripe.secrets[0]: the environment variable STRIPE_WHSEC is not set",
		"h.yaml:23: consumers.g.match[0]: not a topic pattern",
		"h.yaml:24: consumers.g.retry.max_attempts: 0 is too small: at least 1",
		"h.yaml:27: consumers.g.effects[0].sqll: is not a known name: did you mean sql?",
		"h.yaml:28: consumers.g.effects[1].name: one is taken by consumers.g.effects[0].name (line 26)",
		"h.yaml:29: consumers.g.effects[1].sql: :a is not among the params: add params: { a: \"json:a\" }",
		"--set: nope: is not a known name",
		"--set: admin.listen: 0.0.0.0:1 can be reached from other machines and has no token",
	)
}
