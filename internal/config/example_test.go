package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
)

var exampleEnv = env("STRIPE_WHSEC", "whsec_a", "ORDERS_SECRET", "b", "CRM_SECRET", "c")

// writeExample puts the documented example into a new folder, with the template
// that it names.
func writeExample(t *testing.T, text string) string {
	t.Helper()
	file := write(t, text)
	if err := os.Mkdir("mail", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("mail/ticket.txt", []byte("Hello {{ .json.order.email }}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestExample loads the documented example, for every role.
func TestExample(t *testing.T) {
	file := writeExample(t, testFile(t, "testdata/example.yaml"))
	for _, role := range []config.Role{config.Serve, config.ReceiverRole, config.ConsumerRole, config.Operator, config.Trial} {
		cfg, err := config.Load(config.Options{File: file, Getenv: exampleEnv, Role: role})
		if err != nil {
			t.Errorf("%s:\n%v", role, err)
			continue
		}
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
		case len(tickets.Effects) != 3, tickets.Effects[0].Params["email"] != "json:order.email", tickets.Retry.MaxCrashes != 5:
			t.Errorf("%s: tickets: %+v", role, tickets)
		}
		exampleEffects(t, role, cfg)
	}
}

func exampleEffects(t *testing.T, role config.Role, cfg *config.Config) {
	t.Helper()
	ticket, mail, crm := cfg.Consumers["tickets"].Effects[0], cfg.Consumers["tickets"].Effects[1], cfg.Consumers["tickets"].Effects[2]
	project := cfg.Consumers["order-status"].Effects[0]
	switch {
	case ticket.OncePer != "json:order.id", !project.OnlyLatest, crm.When != "json.order.total > 0":
		t.Errorf("%s: when, once_per or only_latest: %+v %+v %+v", role, ticket, crm, project)
	case mail.Email == nil, mail.Email.To[0] != "json:order.email", mail.Email.Timeout != 30*time.Second, mail.OnUnknown != "rerun", mail.RerunWithin != 20*time.Hour:
		t.Errorf("%s: email: %+v", role, mail)
	case crm.Forward == nil, crm.Forward.Rate.String() != "50/s", crm.Forward.Secret[0].Reveal() != "c", crm.Forward.AllowPrivate[0] != "10.0.0.0/8":
		t.Errorf("%s: forward: %+v", role, crm)
	case crm.Timeout != time.Minute, cfg.Orders()["orders"].Version != "json:order.updated_at":
		t.Errorf("%s: timeout %s, orders %v", role, crm.Timeout, cfg.Orders())
	}
}

// TestWhoNeedsTheEffectsSettings: a receiver and an operator run without the
// consumers' secrets and templates, a trial without secrets and servers.
func TestWhoNeedsTheEffectsSettings(t *testing.T) {
	text := testFile(t, "testdata/example.yaml")
	getenv := env("STRIPE_WHSEC", "whsec_a", "ORDERS_SECRET", "b")
	for _, role := range []config.Role{config.ReceiverRole, config.Operator} {
		if _, err := load(t, text, config.Options{Getenv: getenv, Role: role}); err != nil {
			t.Errorf("%s:\n%v", role, err)
		}
	}
	_, err := load(t, text, config.Options{Getenv: getenv, Role: config.ConsumerRole})
	wantProblems(t, err, "h.yaml:82: consumers.tickets.effects[1].email.text: mail/ticket.txt cannot be read",
		"h.yaml:86: consumers.tickets.effects[2].forward.secret[0]: the environment variable CRM_SECRET is not set")
	file := writeExample(t, text)
	if _, err := config.Load(config.Options{File: file, Getenv: env(), Role: config.Trial}); err != nil {
		t.Errorf("trial:\n%v", err)
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
		{"effects.yaml", []config.Role{config.Serve, config.Operator, config.Trial}, []string{
			"ORDERS_SECRET", "b", "SMTP_URL", "smtp+tls://u:p%40@mail.example.com", "CRM_SECRET", "whsec_c2VjcmV0",
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
