package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/hookonce/hookonce/internal/testenv/server"
)

// TestRedisRunsThroughTheEngine takes the container way wherever an engine
// answers, with an image made from the machine's own redis-server, so that no
// registry is needed. Without an engine the same holds for a local process.
func TestRedisRunsThroughTheEngine(t *testing.T) {
	want := "private process"
	if err := server.EngineAnswers(t.Context()); err != nil {
		t.Logf("the way taken: local process, because: %v", err)
	} else if image := redisImage(t); image != "" {
		want = "container (" + image
		t.Logf("the way taken: testcontainers with %s", image)
	}
	s, err := server.Open(t.Context(), server.Redis)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if !strings.HasPrefix(s.From, want) {
		t.Fatalf("the server came from %s, want %s: %v", s.From, want, s.Passed)
	}
	say(t, s.URL, "SET order A-1", "+OK")
	for _, end := range []func(context.Context) error{s.Kill, s.Stop} {
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		say(t, s.URL, "GETRANGE order 0 0", "$1") // the same port, the same data
	}
}

// TestUnreachableImageFallsThroughInSeconds names images that cannot be had.
func TestUnreachableImageFallsThroughInSeconds(t *testing.T) {
	for _, image := range []string{
		"registry.invalid/redis:none", // no such host
		"192.0.2.1:5000/redis:none",   // an address that nobody answers from
	} {
		t.Run(image, func(t *testing.T) {
			t.Setenv("HOOKONCE_TEST_REDIS_IMAGE", image)
			t.Setenv(server.EnvRedis, "")
			t.Setenv(server.EnvContainers, "auto")
			server.ForgetPull(t)
			begin := time.Now()
			s, err := server.Open(t.Context(), server.Redis)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("it took %v to fall through", took)
			}
			if !strings.HasPrefix(s.From, "private process") {
				t.Errorf("the server came from %s, want a private process", s.From)
			}
			if answers := server.EngineAnswers(t.Context()) == nil; server.PullFailed() != answers {
				t.Errorf("the failed pull is remembered: %v, want %v", server.PullFailed(), answers)
			}
		})
	}
}

// redisImage builds FROM scratch from the local redis-server and its libraries
// and makes it the image of this test; "" when the machine has none.
func redisImage(t *testing.T) string {
	t.Helper()
	t.Setenv(server.EnvRedis, "")
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return ""
	}
	dir := t.TempDir()
	copyInto(t, dir, program, "/usr/bin/redis-server")
	out, err := exec.CommandContext(t.Context(), "ldd", program).Output()
	if err != nil {
		t.Fatalf("ldd %s: %v", program, err)
	}
	for field := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(field, "/") {
			copyInto(t, dir, field, field)
		}
	}
	file := "FROM scratch\nCOPY root /\n"
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := testcontainers.NewDockerProvider()
	if err != nil {
		t.Fatal(err)
	}
	repo := "hookonce-testenv-redis"
	image, err := p.BuildImage(t.Context(), &testcontainers.ContainerRequest{
		FromDockerfile: testcontainers.FromDockerfile{Context: dir, Repo: repo, Tag: fmt.Sprint(os.Getpid())},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := p.Client().ImageRemove(context.Background(), image, client.ImageRemoveOptions{Force: true, PruneChildren: true})
		if err := errors.Join(err, p.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("HOOKONCE_TEST_REDIS_IMAGE", image)
	return image
}

func copyInto(t *testing.T, dir, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(dir, "root", to)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, content, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
}

// say sends one inline command and checks how the answer begins.
func say(t *testing.T, raw, command, want string) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialTimeout("tcp", u.Host, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, want) {
		t.Fatalf("%s: %q, %v; want %s", command, line, err, want)
	}
}
