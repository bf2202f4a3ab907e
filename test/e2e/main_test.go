package e2e

import (
	"bytes"
	"database/sql"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/internal/testenv"
)

// bin is the folder of the programs under test.
var bin string

func TestMain(m *testing.M) { os.Exit(testenv.RunPrograms(m, &bin, "../../cmd/...")) }

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// program is a running program.
type program struct {
	cmd  *exec.Cmd
	done chan error

	mu  sync.Mutex
	out bytes.Buffer
}

func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *program) pid() string { return strconv.Itoa(p.cmd.Process.Pid) }

// term ends the program in good order and returns how it ended.
func (p *program) term() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.done:
		p.done <- err
		return err
	case <-time.After(40 * time.Second):
		return errors.New("still running after 40 s")
	}
}

// begin starts a program in a folder; it is killed at the end of the test.
func begin(t *testing.T, dir, name string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(filepath.Join(bin, name), args...), done: make(chan error, 1)}
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%s: %s", name, p.output())
		}
	})
	return p
}

// run runs a program to its end and returns its output and exit code.
func run(t *testing.T, dir, name string, args ...string) (string, int) {
	t.Helper()
	p := begin(t, dir, name, args...)
	select {
	case err := <-p.done:
		p.done <- err
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return p.output(), exit.ExitCode()
		}
		return p.output(), 0
	case <-time.After(60 * time.Second):
		t.Fatalf("%s %v is still running after 60 s:\n%s", name, args, p.output())
	}
	return "", -1
}

// until polls a condition for 30 s.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("%s: not within 30 s", what)
		case <-tick.C:
		}
	}
}

func tryPost(url, body string) (int, http.Header) {
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header
}

func openSQLite(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := sqlite.OpenDB(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
