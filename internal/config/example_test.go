package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
)

var exampleEnv = env("STRIPE_WHSEC", "whsec_a", "ORDERS_SECRET", "b", "CRM_SECRET", "c")

// TestExample loads the documented example: every name in it is known, and
// what this version does not do yet is said once for each part.
func TestExample(t *testing.T) {
	text := testFile(t, "testdata/example.yaml")
	_, err := load(t, text, config.Options{Getenv: exampleEnv})
	for _, line := range problemLines(t, err) {
		if !strings.Contains(line, "this version does not do ") {
			t.Errorf("unexpected problem: %s", line)
		}
	}
	wantProblems(t, err,
		"h.yaml:80: consumers.tickets.effects[0].once_per: ",
		"h.yaml:82: consumers.tickets.effects[1].email: ",
		"h.yaml:83: consumers.tickets.effects[1].on_unknown: ",
		"h.yaml:84: consumers.tickets.effects[1].rerun_within: ",
		"h.yaml:86: consumers.tickets.effects[2].forward: ",
		"h.yaml:87: consumers.tickets.effects[2].when: ",
		"h.yaml:92: consumers.order-status.effects[0].only_latest: ",
	)
}

// TestExampleBuiltParts loads the example without those parts, for every role.
func TestExampleBuiltParts(t *testing.T) {
	text := testFile(t, "testdata/example.yaml")
	text = regexp.MustCompile(`(?s)      - name: mail-ticket.*?(  order-status:)`).ReplaceAllString(text, "$1")
	text = regexp.MustCompile(`(?m)^ +(once_per|only_latest): .*\n`).ReplaceAllString(text, "")
	for _, role := range []config.Role{config.Serve, config.ReceiverRole, config.ConsumerRole, config.Operator} {
		cfg := mustLoad(t, text, config.Options{Getenv: exampleEnv, Role: role})
		orders, legacy, tickets := cfg.Sources["orders"], cfg.Sources["legacy"], cfg.Consumers["tickets"]
		switch {
		case cfg.FirstRun, len(cfg.Sources) != 4, len(cfg.Consumers) != 2:
			t.Errorf("%s: sources or consumers are missing: %+v", role, cfg)
		case cfg.Store.MaxOutboxBytes != 512<<20, cfg.Inbox.TTL != 45*24*time.Hour, len(cfg.Broker.URL) != 1:
			t.Errorf("%s: servers: %+v %+v", role, cfg.Store, cfg.Inbox)
		case len(cfg.Sources["stripe"].Secrets) != 1:
			t.Errorf("%s: the empty old secret was kept", role)
		case !reflect.DeepEqual(orders.Verify, config.Verify{Scheme: "hmac-sha256", Header: "X-Signature", Encoding: "hex", Prefix: "sha256=", Tolerance: 5 * time.Minute}):
			t.Errorf("%s: verify: %+v", role, orders.Verify)
		case orders.Respond.Status != 202, orders.Type.From != "json:event", len(orders.Key) != 2, orders.Line != 45:
			t.Errorf("%s: orders: %+v", role, orders)
		case legacy.Type.Map["paid"] != "payment.confirmed", legacy.Body.Window != 24*time.Hour, !legacy.Body.Canonical:
			t.Errorf("%s: legacy: %+v", role, legacy)
		case len(tickets.Effects) != 1, tickets.Effects[0].Params["email"] != "json:order.email", tickets.Retry.MaxCrashes != 5:
			t.Errorf("%s: tickets: %+v", role, tickets)
		}
	}
}

// TestDeployExamples: the shipped examples load for the roles they name.
func TestDeployExamples(t *testing.T) {
	for _, tt := range []struct {
		file  string
		roles []config.Role
		env   []string
	}{
		{"single.yaml", []config.Role{config.Serve, config.Operator}, []string{"STRIPE_WHSEC", "whsec_a", "ORDERS_SECRET", "b"}},
		{"split.yaml", []config.Role{config.ReceiverRole}, []string{
			"STRIPE_WHSEC", "whsec_a", "ORDERS_SECRET", "b", "REDIS_URL", "redis://h:6379/0", "AMQP_URL", "amqp://u:p@h:5672/",
		}},
		{"split.yaml", []config.Role{config.ConsumerRole}, []string{
			"AMQP_URL", "amqp://u:p@h:5672/", "DATABASE_URL", "postgres://u:p@h/shop", "HOOKONCE_ADMIN_TOKEN", "t",
		}},
	} {
		for _, role := range tt.roles {
			file := filepath.Join("..", "..", "deploy", "examples", tt.file)
			cfg, err := config.Load(config.Options{File: file, Role: role, Getenv: env(tt.env...)})
			if err != nil {
				t.Errorf("%s as %s:\n%v", tt.file, role, err)
				continue
			}
			if len(cfg.Warnings) != 0 {
				t.Errorf("%s as %s warns: %q", tt.file, role, cfg.Warnings)
			}
		}
	}
}

// FuzzLoad: whatever the file holds, Load answers with problems that have
// lines, or with a configuration that is valid by itself.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"testdata/example.yaml", "../../deploy/examples/single.yaml", "../../deploy/examples/split.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "store.kind=redis")
	}
	f.Add("sources:\n  a: { verify: none, type: { from: 'json:{a}', map: { x: y } } }\n", "sources.a.type.map.a.b=c")
	f.Add("a: &x [1, *x, !!str 5, {<<: *x}]\n? b\n: |\n  c\n--- \n", "x={")
	f.Add("consumers: { g: { match: ['#'], effects: [{ name: e, sql: 'select $a$ :b /* ' }] } }", "consumers.g.effects=[]")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text, set string) {
		file := filepath.Join(dir, "fuzz.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, role := range []config.Role{config.Serve, config.ReceiverRole} {
			cfg, err := config.Load(config.Options{File: file, Set: []string{set}, Role: role, Getenv: exampleEnv})
			if err != nil {
				for _, p := range err.(config.Problems) { //nolint:errorlint // the type is the promise
					if p.Text == "" || p.File == file && p.Line < 1 {
						t.Errorf("a problem without text or line: %#v", p)
					}
				}
				continue
			}
			if err := cfg.Validate(role); err != nil {
				t.Errorf("loaded, but not valid: %v", err)
			}
		}
	})
}
