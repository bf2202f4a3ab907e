package guarantee

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is one of our programs, started, killed and started again on the
// same configuration.
type process struct {
	t     *testing.T
	name  string
	args  []string
	ready string // URL that answers 200 once the process does its work

	cmd  *exec.Cmd
	done chan error
	log  lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newProcess(t *testing.T, name, ready string, args ...string) *process {
	p := &process{t: t, name: name, args: args, ready: ready}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, tail(p.log.String(), 6000))
		}
	})
	return p
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// start runs the program and returns when it is ready.
func (p *process) start() {
	p.t.Helper()
	p.launch()
	within(p.t, 30*time.Second, p.name+" is ready", func() error {
		select {
		case err := <-p.done:
			p.done <- err
			return stop{fmt.Errorf("%s ended: %v", p.name, err)}
		default:
		}
		return get200(p.ready)
	})
}

func (p *process) launch() {
	p.t.Helper()
	p.cmd = exec.Command(filepath.Join(bin, p.name), p.args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	if err := p.cmd.Start(); err != nil {
		p.t.Fatalf("start %s: %v", p.name, err)
	}
	p.done = make(chan error, 1)
	go func(cmd *exec.Cmd, done chan error) { done <- cmd.Wait() }(p.cmd, p.done)
}

// kill is kill -9.
func (p *process) kill() { p.end(syscall.SIGKILL) }

// term is a shutdown in good order; it fails the test when that takes too long.
func (p *process) term() { p.end(syscall.SIGTERM) }

func (p *process) end(sig syscall.Signal) {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(sig)
	select {
	case err := <-p.done:
		if sig == syscall.SIGTERM && err != nil {
			p.t.Errorf("%s on SIGTERM: %v", p.name, err)
		}
	case <-time.After(40 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
		p.t.Errorf("%s did not end within 40 s of %s", p.name, sig)
	}
	p.cmd = nil
}

// stop ends polling early: the condition can no longer come true.
type stop struct{ error }

// within polls until check succeeds, and fails the test after limit.
func within(t *testing.T, limit time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		if s := (stop{}); errors.As(err, &s) {
			t.Fatalf("%s: %v", what, err)
		}
		select {
		case <-deadline:
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		case <-tick.C:
		}
	}
}

func get200(url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var b bytes.Buffer
		_, _ = b.ReadFrom(resp.Body)
		return fmt.Errorf("%s answered %d: %s", url, resp.StatusCode, strings.TrimSpace(b.String()))
	}
	return nil
}

// freeAddr is a loopback address that was free a moment ago.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
