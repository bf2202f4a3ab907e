package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
)

func TestVariables(t *testing.T) {
	getenv := env("TOKEN", "tok", "N", "7", "D", "3d", "SIZE", "2MiB", "B", "true", "EMPTY", "",
		"NASTY", "x\"\n  knid: [ # }", "SECRET", " s3cret \n", "KIND", "sqlite")
	write(t, `
data_dir: ${HOME_OF_DATA:-./d}/x-${N}
admin: { token: "${TOKEN}" }
startup_timeout: ${D}
shutdown_timeout: ${MISSING:-9s}
receiver: { max_body: "${SIZE}", public_url: "${EMPTY}" }
store:
  kind: ${KIND}
  max_outbox: ${EMPTY}
  lease: ${EMPTY:-11s}
sources:
  a:
    secrets: [ "${SECRET}", "${MISSING:-}", "${EMPTY}", "${file:sec/ret}" ]
    key: [ body ]
    body: { canonical: "${B}" }
    respond: { body: "${NASTY}|$${N}|$$|$1|$x$|{}|$$${N}" }
    type: "=${N}.x"
consumers:
  ${N}:
    match: [ "a.#" ]
    effects: [ { name: e, sql: "delete from t" } ]
`)
	if err := os.Mkdir("sec", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("sec/ret", []byte("from file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// From another folder: files are relative to the configuration's.
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	_, err = config.Load(config.Options{File: filepath.Join(dir, "h.yaml"), Getenv: getenv})
	if err == nil || strings.Count(err.Error(), "\n") != 0 || !strings.Contains(err.Error(), `"${N}" cannot be a name`) {
		t.Fatalf("keys must not be filled in: %v", err)
	}
	text := strings.Replace(testFile(t, filepath.Join(dir, "h.yaml")), "${N}:", "n:", 1)
	if err := os.WriteFile(filepath.Join(dir, "h.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{File: filepath.Join(dir, "h.yaml"), Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	a := cfg.Sources["a"]
	for _, tt := range []struct {
		name      string
		got, want any
	}{
		{"data_dir", cfg.DataDir, "./d/x-7"},
		{"token", cfg.Admin.Token.Reveal(), "tok"},
		{"days", cfg.StartupTimeout, 72 * time.Hour},
		{"default", cfg.ShutdownTimeout, 9 * time.Second},
		{"size", cfg.Receiver.MaxBody, config.Size(2 << 20)},
		{"empty number", cfg.Store.MaxOutbox, int64(1_000_000)},
		{"empty has default", cfg.Store.Lease, 11 * time.Second},
		{"bool", a.Body.Canonical, true},
		{"body", a.Respond.Body, "x\"\n  knid: [ # }|${N}|$$|$1|$x$|{}|$${N}"},
		{"type", a.Type.From, "=7.x"},
		{"secrets", len(a.Secrets), 2},
		{"dir", cfg.Dir, dir},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %#v, want %#v", tt.name, tt.got, tt.want)
		}
	}
	if a.Secrets[0].Reveal() != "s3cret" || a.Secrets[1].Reveal() != "from file" {
		t.Errorf("secrets: %q, %q", a.Secrets[0].Reveal(), a.Secrets[1].Reveal())
	}
}

func TestVariableProblems(t *testing.T) {
	_, err := load(t, `data_dir: ${A}${B:-}${C}
admin:
  token: ${order.id}
startup_timeout: ${WORD}
receiver: { public_url: "${", listen: "${}" }
store: { redis: "${file:none}" }
sources:
  a: { secrets: [ "${GONE:-}", "${GONE2:-}" ] }
  b: { secrets: [ "${GONE}" ] }
  c: { secrets: [ "" ] }
  d: { secrets: [ "${file:.}" ] }
`, config.Options{Getenv: env("WORD", "hunter2")})
	wantProblems(t, err,
		"h.yaml:1: data_dir: the environment variable A is not set: set it, or write ${A:-default}",
		"h.yaml:1: data_dir: the environment variable C is not set",
		`h.yaml:3: admin.token: "${order.id}" is not a variable`,
		`h.yaml:4: startup_timeout: "${WORD}" is not a duration`,
		"h.yaml:5: receiver.public_url: ${ without }",
		`h.yaml:5: receiver.listen: "${}" is not a variable`,
		"h.yaml:6: store.redis: the file none cannot be read (no such file or directory)",
		"h.yaml:8: sources.a.secrets: no secret to verify deliveries with",
		"h.yaml:9: sources.b.secrets[0]: the environment variable GONE is not set",
		"h.yaml:10: sources.c.secrets[0]: an empty secret means nothing",
		"h.yaml:11: sources.d.secrets[0]: the file . cannot be read (not a regular file)",
	)
}

// TestSpareVariables: a role starts without the variables of what it never uses.
func TestSpareVariables(t *testing.T) {
	const text = `store: { kind: redis, redis: "${REDIS}" }
broker: { kind: rabbitmq, url: "${AMQP}" }
inbox: { kind: postgres, postgres: "${PG}" }
admin: { token: "${TOKEN}" }
sources:
  s: { provider: stripe, secrets: [ "${SECRET}" ] }
consumers:
  g: { match: [ "#" ], concurrency: "${N}", effects: [ { name: e, sql: "delete from t" } ] }
`
	for _, tt := range []struct {
		role config.Role
		want []string
	}{
		{config.Serve, []string{"REDIS", "AMQP", "PG", "TOKEN", "SECRET", "N"}},
		{config.ReceiverRole, []string{"REDIS", "AMQP", "SECRET"}},
		{config.ConsumerRole, []string{"AMQP", "PG", "TOKEN", "N"}},
		{config.Operator, []string{"REDIS", "AMQP", "PG", "N"}},
	} {
		t.Run(tt.role.String(), func(t *testing.T) {
			_, err := load(t, text, config.Options{Role: tt.role})
			lines := problemLines(t, err)
			if len(lines) != len(tt.want) {
				t.Fatalf("got:\n%v\nwant %v", err, tt.want)
			}
			for i, name := range tt.want {
				if !strings.Contains(lines[i], "the environment variable "+name+" is not set") {
					t.Errorf("got %s, want %s", lines[i], name)
				}
			}
		})
	}
}
