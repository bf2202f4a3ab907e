package config_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/receiver/provider"
)

// TestPresetSpeaksFirst: what a provider is known to want comes before the
// defaults, and what the user says before both.
func TestPresetSpeaksFirst(t *testing.T) {
	cfg := mustLoad(t, `sources:
  ifood: { provider: ifood, secrets: [ s ] }
  own: { provider: ifood, secrets: [ s ], respond: { status: 200 }, on_no_key: reject, retention: 1d, entity: "json:x" }
  adyen: { provider: adyen, secrets: [ "00" ] }
  quiet: { provider: adyen, secrets: [ "00" ], respond: { status: 202 } }
  nuvemshop: { provider: nuvemshop, secrets: [ s ] }
  counted: { provider: nuvemshop, secrets: [ s ], dedup: key }
  linear: { provider: linear, secrets: [ s ] }
  evolution: { provider: evolution, secrets: [ s ], verify: { tolerance: 1h } }
`, config.Options{})
	s := cfg.Sources
	for _, test := range []struct {
		what      string
		got, want any
	}{
		{"status", s["ifood"].Respond.Status, 202},
		{"on_no_key", s["ifood"].OnNoKey, "park"},
		{"entity", s["ifood"].Entity, "json:orderId"},
		{"own status", s["own"].Respond.Status, 200},
		{"own on_no_key", s["own"].OnNoKey, "reject"},
		{"own retention", s["own"].Retention, 24 * time.Hour},
		{"own entity", s["own"].Entity, "json:x"},
		{"body", s["adyen"].Respond.Body, "[accepted]"},
		{"own answer without the preset's body", s["quiet"].Respond.Body, ""},
		{"dedup", s["nuvemshop"].Dedup, "none"},
		{"own dedup", s["counted"].Dedup, "key"},
		{"tolerance", s["linear"].Verify.Tolerance, time.Minute},
		{"window", s["evolution"].Body.Window, time.Hour},
		{"own tolerance", s["evolution"].Verify.Tolerance, time.Hour},
	} {
		if test.got != test.want {
			t.Errorf("%s: %v, want %v", test.what, test.got, test.want)
		}
	}
}

// TestBodiesOfAProvider: the limit makes room for what a source's provider sends.
func TestBodiesOfAProvider(t *testing.T) {
	const source = "sources: { a: { provider: whatsapp, secrets: [ s ] } }\n"
	if got := mustLoad(t, source, config.Options{}).Receiver.MaxBody; got != 4<<20 {
		t.Errorf("max_body %s", got)
	}
	cfg := mustLoad(t, source+"receiver: { max_body: 2MiB }\n", config.Options{})
	if got := cfg.Receiver.MaxBody; got != 2<<20 || !strings.Contains(strings.Join(cfg.Warnings, "\n"), "sends up to 4MiB") {
		t.Errorf("max_body %s, warnings %q", got, cfg.Warnings)
	}
}

// TestEveryPrintedSourceLoads without a warning.
func TestEveryPrintedSourceLoads(t *testing.T) {
	text := "sources:\n"
	for _, p := range provider.All() {
		text += "  " + p.Name + ":\n    provider: " + p.Name + "\n    " + strings.ReplaceAll(p.Sample.Source, "\n", "\n    ") + "\n"
	}
	cfg := mustLoad(t, text, config.Options{Role: config.ReceiverRole, Set: []string{"broker.kind=rabbitmq", "broker.url=amqp://h/"}})
	if len(cfg.Sources) != len(provider.All()) || len(cfg.Warnings) != 0 {
		t.Errorf("%d sources, warnings %q", len(cfg.Sources), cfg.Warnings)
	}
}

// TestContextOfItems can be read by keys, types and effects.
func TestContextOfItems(t *testing.T) {
	mustLoad(t, `sources:
  pix: { provider: efi, secrets: [ s ], key: [ "json:{context:endToEndId}:{id}" ], type: "context:item" }
consumers:
  g:
    match: [ "pix.#" ]
    effects:
      - name: one
        sql: insert into refunds values (:payment)
        params: { payment: "context:endToEndId" }
`, config.Options{})
}

// TestKeysThatCannotBe: what is another one on each attempt is no key.
func TestKeysThatCannotBe(t *testing.T) {
	source := func(name, key string) string {
		return "sources:\n  a:\n    provider: " + name + "\n    secrets: [ s ]\n    key: [ \"" + key + "\" ]\n"
	}
	refused := func(name, key, why string) rule {
		return rule{name + " " + key, source(name, key), 0, []string{"h.yaml:5: sources.a.key[0]: … " + why}}
	}
	runRules(t, []rule{
		refused("stripe", "header:Stripe-Signature", "is a signature"),
		refused("stripe", "json:{id}:{header:stripe-signature}", "is a signature"),
		refused("stripe", "json:request.idempotency_key", "shared by all events of one API call"),
		refused("slack", "header:X-Slack-Request-Timestamp", "is the time of sending"),
		refused("slack", "header:X-Slack-Retry-Num", "tells of the delivery"),
		refused("generic", "header:X-Signature", "is a signature"),
		refused("generic", "header:Date", "tells of the delivery"),
		refused("woocommerce", "header:X-WC-Webhook-Delivery-ID", "shared by all events of one second"),
		refused("mercadopago", "header:x-request-id", "made anew for each delivery"),
		refused("linear", "json:webhookTimestamp", "the time of sending"),
		refused("linear", "body", "makes the body anew for each attempt"),
		{"github's own", source("github", "header:X-GitHub-Delivery"), 0, nil},
		{"generic id", source("generic", "header:X-Request-Id"), 0, nil},
	})
}

func TestSourceSecrets(t *testing.T) {
	cfg := mustLoad(t, `sources:
  a:
    provider: stripe
    secrets:
      - new
      - { value: " old ", expires: 2030-12-31 }
      - { value: "${GONE:-}", expires: 2030-12-31 }
      - { value: precise, expires: "2030-12-31T18:00:00Z" }
      - { value: over, expires: 2020-01-01 }
`, config.Options{})
	set := cfg.Sources["a"].Settings()
	if len(set.Secrets) != 1 || set.Secrets[0] != "new" || len(set.Expiring) != 3 {
		t.Fatalf("%d secrets, %d with an end", len(set.Secrets), len(set.Expiring))
	}
	if e := set.Expiring[0]; e.Value != "old" || !e.Expires.Equal(time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%q until %s: a date is meant to its end", e.Value, e.Expires)
	}
	if e := set.Expiring[1]; !e.Expires.Equal(time.Date(2030, 12, 31, 18, 0, 0, 0, time.UTC)) {
		t.Errorf("until %s", e.Expires)
	}
	if !strings.Contains(strings.Join(cfg.Warnings, "\n"), "has expired") {
		t.Errorf("warnings %q", cfg.Warnings)
	}
	runRules(t, []rule{
		{"when", "sources:\n  a: { provider: stripe, secrets: [ { value: s, expires: soon } ] }\n", 0, []string{`h.yaml:2: sources.a.secrets[0].expires: "soon" is no point in time`}},
		{"name", "sources:\n  a: { provider: stripe, secrets: [ { valu: s } ] }\n", 0, []string{"h.yaml:2: sources.a.secrets[0].valu: is not a known name: did you mean value?", "h.yaml:2: sources.a.secrets[0]: an empty secret"}},
	})
}

func TestSourceRules(t *testing.T) {
	t.Run("schema", func(t *testing.T) {
		name := write(t, "sources:\n  a: { verify: none, schema: order.json, on_invalid: park }\n")
		if err := os.WriteFile("order.json", []byte(`{"type":"object"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(config.Options{File: name, Getenv: env()})
		if err != nil {
			t.Fatal(err)
		}
		if string(cfg.Sources["a"].SchemaText) != `{"type":"object"}` {
			t.Errorf("schema %q", cfg.Sources["a"].SchemaText)
		}
	})
	source := func(fields string) string { return "sources:\n  a:\n    verify: none\n" + fields }
	runRules(t, []rule{
		{"all", source("    ignore: [ \"order.draft\" ]\n    allow_ips: [ 10.0.0.0/8, \"::1\" ]\n    dedup: none\n    max_items: 5\n    on_invalid: park\n"), 0, nil},
		{"wrong", source("    ignore: [ \"or*\" ]\n    allow_ips: [ here ]\n    dedup: body\n    max_items: 0\n    on_invalid: drop\n    schema: none.json\n"), 0, []string{
			"h.yaml:4: sources.a.ignore[0]: not a topic pattern", `h.yaml:5: sources.a.allow_ips[0]: "here" is no address`,
			"h.yaml:6: sources.a.dedup: ", "h.yaml:7: sources.a.max_items: 0 is too small", "h.yaml:8: sources.a.on_invalid: ",
			`h.yaml:9: sources.a.schema: "none.json" cannot be read`,
		}},
		{"replaced", "sources:\n  a: { provider: stripe, secrets: [ s ], verify: { scheme: hmac-sha512, header: X-Sig } }\n", 0, nil},
		{"own scheme", "sources:\n  a: { provider: pagarme, secrets: [ \"u:p\" ], verify: { scheme: basic } }\n", 0, nil},
		{"no secret needed", "sources:\n  a: { provider: woovi }\n", 0, nil},
		{"no secret, own scheme", "sources:\n  a: { provider: pagarme, verify: { scheme: basic } }\n", 0, []string{"h.yaml:2: sources.a.verify: no secret"}},
		{"wrong kind", "sources:\n  a: { provider: sendgrid, secrets: [ s ] }\n", 0, []string{"h.yaml:2: sources.a.verify: secret 1 is no public key"}},
		{"template", "sources:\n  a: { secrets: [ s ], verify: { signed: \"{timestamp}.{body}\" } }\n", 0, []string{"h.yaml:2: sources.a.verify: verify.timestamp names"}},
		{"template, whole", "sources:\n  a: { secrets: [ s ], verify: { signed: \"{timestamp}.{body}\", timestamp: X-Time, tolerance: 1m } }\n", 0, nil},
		{"fresh body", "sources:\n  a: { provider: linear, secrets: [ s ], on_changed_body: reject, previous_keys: [ \"body:stringify\" ] }\n", 0, []string{
			"h.yaml:2: sources.a.previous_keys[0]: provider linear makes the body anew", "h.yaml:2: sources.a.on_changed_body: provider linear makes the body anew",
		}},
		{"over", "sources:\n  a: { secrets: [ s ], verify: { over: air } }\n", 0, []string{`h.yaml:2: sources.a.verify.over: "air" is not known here`}},
		{"paypal", "sources:\n  a: { provider: paypal }\n", 0, []string{"h.yaml:2: sources.a.verify: set verify.id"}},
	})
}

// TestProvidersExample: the file that people start from is a configuration.
func TestProvidersExample(t *testing.T) {
	cfg, err := config.Load(config.Options{
		File:   "../../deploy/examples/providers.yaml",
		Getenv: env("STRIPE_WHSEC", "whsec_x", "PIX_TOKEN", "x", "META_APP_SECRET", "x", "META_VERIFY_TOKEN", "x", "PARTNER_SECRET", "x"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Sources) != 5 || len(cfg.Warnings) != 0 {
		t.Errorf("%d sources, warnings %q", len(cfg.Sources), cfg.Warnings)
	}
}
