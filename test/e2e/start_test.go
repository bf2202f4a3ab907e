package e2e

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Every mistake is told at once, with file, line and remedy, exit code 2, and
// before anything listens.
func TestBadConfigurationIsReportedAtOnceAndNothingListens(t *testing.T) {
	dir := t.TempDir()
	addr := freeAddr(t)
	file := write(t, dir, "hookonce.yaml", `receiver: { listen: `+addr+` }
broker: { kind: rabbitmq }
sources:
  stripe:
    provider: strip
    secrets: [ "whsec_hush" ]
  orders:
    verify: { scheme: hmac-sha256, header: X-Signature }
    retention: 3 weeks
    colour: red
`)
	out, code := run(t, dir, "hookonce", "serve", "--config", file)
	if code != 2 {
		t.Errorf("exit %d, want 2", code)
	}
	for _, want := range []string{
		"hookonce.yaml:2:",           // rabbitmq without a URL
		"hookonce.yaml:5:", "stripe", // a typo, with what was meant
		"hookonce.yaml:9:", "retention",
		"hookonce.yaml:10:", "colour",
		"secret",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q", want)
		}
	}
	if strings.Contains(out, "whsec_hush") {
		t.Error("a secret was printed")
	}
	if c, err := net.Dial("tcp", addr); err == nil {
		_ = c.Close()
		t.Error("something listens")
	}
	if t.Failed() {
		t.Log(out)
	}
}

// The combinations that cannot work are refused before the start.
func TestForbiddenCombinationsAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ program, config string }{
		"embedded broker with redis":      {"hookonce serve", "store: { kind: redis, redis: \"redis://127.0.0.1:1/0\" }\nsources: { a: { verify: none } }\n"},
		"embedded broker with two roles":  {"receiver", "sources: { a: { verify: none } }\n"},
		"admin off loopback, no token":    {"hookonce serve", "admin: { listen: 0.0.0.0:1 }\nsources: { a: { verify: none } }\n"},
		"first run off loopback":          {"hookonce serve", "receiver: { listen: 0.0.0.0:1 }\n"},
		"embedded broker, postgres inbox": {"hookonce serve", "inbox: { kind: postgres, postgres: \"postgres://a@127.0.0.1:1/b\" }\nsources: { a: { verify: none } }\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := write(t, dir, "c.yaml", c.config)
			args := append(strings.Fields(c.program), "--config", file)
			out, code := run(t, dir, args[0], args[1:]...)
			if code != 2 || !strings.Contains(out, "c.yaml:") {
				t.Errorf("exit %d, want 2 and a line of the file\n%s", code, out)
			}
		})
	}
}

// What is wrong with the surroundings is one clear line, exit code 1.
func TestSurroundingsThatDoNotWorkAreOneClearLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := write(t, t.TempDir(), "a-file", "")
	for name, c := range map[string]struct{ program, config, want string }{
		"port in use": {"hookonce serve", "receiver: { listen: " + taken.Addr().String() + " }\nadmin: { listen: " + freeAddr(t) + " }\n", taken.Addr().String()},
		"data_dir that cannot be written": {
			"hookonce serve", "data_dir: " + file + "/data\nreceiver: { listen: " + freeAddr(t) + " }\nadmin: { listen: " + freeAddr(t) + " }\n", file,
		},
		"store that does not answer": {"receiver", `startup_timeout: 1s
receiver: { listen: ` + freeAddr(t) + `, admin_listen: ` + freeAddr(t) + ` }
store: { kind: redis, redis: "redis://:hush@127.0.0.1:1/0" }
broker: { kind: rabbitmq, url: "amqp://u:hush@127.0.0.1:1/" }
sources: { a: { verify: none } }
`, "127.0.0.1:1"},
		"inbox that does not answer": {"consumer", `startup_timeout: 1s
admin: { listen: ` + freeAddr(t) + ` }
broker: { kind: rabbitmq, url: "amqp://u:hush@127.0.0.1:1/" }
inbox: { kind: postgres, postgres: "postgres://u:hush@127.0.0.1:1/shop" }
consumers: { a: { match: [ "#" ], effects: [ { name: x, sql: "select 1" } ] } }
`, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			args := append(strings.Fields(c.program), "--config", write(t, dir, "c.yaml", c.config))
			out, code := run(t, dir, args[0], args[1:]...)
			last := out[strings.LastIndex("\n"+strings.TrimSpace(out), "\n"):]
			if code != 1 || !strings.Contains(last, c.want) || strings.Contains(out, "hush") || strings.Contains(out, "goroutine") {
				t.Errorf("exit %d, want 1 and a last line that names %s, without a secret\n%s", code, c.want, out)
			}
		})
	}
}

// The first run needs no configuration: it prints what to try, and one order
// delivered three times is one row.
func TestFirstRunTakesAnOrderOnce(t *testing.T) {
	dir := t.TempDir()
	hooks, admin := freeAddr(t), freeAddr(t)
	began := time.Now()
	p := begin(t, dir, "hookonce", "serve", "--set", "receiver.listen="+hooks, "--set", "admin.listen="+admin)
	body := `{"type":"order.paid","order_id":"A-1","email":"ana@example.com"}`
	until(t, "first accepted request", func() bool {
		status, _ := tryPost("http://"+hooks+"/hooks/demo", body)
		return status == 200
	})
	t.Logf("first accepted request after %s", time.Since(began).Round(time.Millisecond))
	for range 2 {
		status, header := tryPost("http://"+hooks+"/hooks/demo", body)
		if status != 200 || header.Get("Idempotent-Replayed") != "true" || header.Get("Hookonce-Key") != "demo/A-1" {
			t.Errorf("status %d, header %v", status, header)
		}
	}
	for _, want := range []string{"http://" + hooks + "/hooks/demo", "http://" + admin, "curl"} {
		if !strings.Contains(p.output(), want) {
			t.Errorf("the output lacks %q:\n%s", want, p.output())
		}
	}
	db := openSQLite(t, filepath.Join(dir, "hookonce-data", "demo.db"))
	count := func() (n int) {
		if err := db.QueryRowContext(context.Background(), "select count(*) from tickets where order_id = 'A-1' and email = 'ana@example.com' and key = 'demo/A-1' and at is not null").Scan(&n); err != nil {
			t.Log(err)
		}
		return n
	}
	until(t, "the ticket", func() bool { return count() == 1 })
	if err := p.term(); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
	if n := count(); n != 1 {
		t.Errorf("%d rows", n)
	}
	if fi, err := os.Stat(filepath.Join(dir, "hookonce-data", "hookonce.db")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("hookonce.db: %v, %v", fi, err)
	}
}

// A second process on the same files is refused with the first one's pid.
func TestASecondProcessOnTheSameFilesIsRefused(t *testing.T) {
	dir := t.TempDir()
	args := func() []string {
		return []string{"serve", "--set", "receiver.listen=" + freeAddr(t), "--set", "admin.listen=" + freeAddr(t)}
	}
	first := begin(t, dir, "hookonce", args()...)
	until(t, "the first process", func() bool { return strings.Contains(first.output(), "curl") })
	out, code := run(t, dir, "hookonce", args()...)
	if code != 1 || !strings.Contains(out, first.pid()) {
		t.Errorf("exit %d, want 1 and the pid %s\n%s", code, first.pid(), out)
	}
	// Operator commands find the running process through the same lock file.
	if out, code := run(t, dir, "hookonce", "dead", "list", "--json"); code != 0 || strings.TrimSpace(out) != "" {
		t.Errorf("dead list: exit %d\n%s", code, out)
	}
}
