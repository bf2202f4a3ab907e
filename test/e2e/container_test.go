package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/testenv"
)

// TestReceiverImage builds deploy/Dockerfile, needs no registry for it, and
// lets the container accept one event with the servers of the other tests. On
// a machine without a container engine the program itself does the same.
func TestReceiverImage(t *testing.T) {
	hooks, admin := freeAddr(t), freeAddr(t)
	args := []string{
		"receiver",
		"--set", "receiver.listen=" + hooks,
		"--set", "receiver.admin_listen=" + admin,
		"--set", "store.kind=redis", "--set", "store.redis=" + testenv.Redis(t),
		"--set", "broker.kind=rabbitmq", "--set", "broker.url=" + testenv.RabbitMQ(t),
		"--set", `sources.orders={provider: generic, verify: none, key: ["json:order_id"], type: "json:type"}`,
	}
	way := "container through testcontainers-go, built from deploy/Dockerfile"
	if !testenv.RunImage(t, buildContext(t), "deploy/Dockerfile", args...) {
		way = "program without a container"
		begin(t, t.TempDir(), "hookonce", args...)
	}
	t.Logf("the way taken: %s", way)

	until(t, "the receiver is ready", func() bool {
		res, err := http.Get("http://" + admin + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	res, err := http.Post("http://"+hooks+"/hooks/orders", "application/json",
		strings.NewReader(`{"type":"order.paid","order_id":"A-1"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK || res.Header.Get("Hookonce-Key") != "orders/A-1" {
		t.Fatalf("%s with Hookonce-Key %q: %s; want 200 with orders/A-1", res.Status, res.Header.Get("Hookonce-Key"), body)
	}
}

// buildContext is what `make build` and the checkout would give docker build.
func buildContext(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"deploy/Dockerfile": filepath.Join("..", "..", "deploy", "Dockerfile")}
	for _, name := range []string{"hookonce", "receiver", "consumer"} {
		files["bin/"+name] = filepath.Join(bin, name)
	}
	for to, from := range files {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(dir, to)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
