package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// credential is the user that a server runs as instead of root.
type credential struct{ uid, gid uint32 }

// local is a private server as a child of this process.
type local struct {
	dir     string
	command func() *exec.Cmd                // a fresh command; launch adds log and attributes
	ready   func(ctx context.Context) error // nil once the server answers
	cred    *credential                     // nil: the user of this process
	soft    os.Signal                       // orderly stop
	cleanup []func()                        // run by remove, last first
	// ctl is the kind's control program; nil when there is none.
	ctl func(ctx context.Context, args []string) *exec.Cmd

	running *process
}

// openProcess starts a private server, with other ports when somebody was
// faster on the first ones.
func openProcess(ctx context.Context, kind Kind) (*Server, error) {
	if !localSupported {
		return nil, fmt.Errorf("local process: %w: only on Linux", errNotHere)
	}
	prepare := map[Kind]func(context.Context) (*Server, *local, error){
		Redis: localRedis, Postgres: localPostgres, RabbitMQ: localRabbitMQ,
	}[kind]
	var last error
	for range 3 {
		s, l, err := prepare(ctx)
		if err != nil {
			return nil, fmt.Errorf("local process: %w", err)
		}
		if last = l.launch(ctx); last == nil {
			s.backend = l
			return s, nil
		}
		_ = l.remove()
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("start a private %s: %w", kind, last)
}

// launch runs the command and waits until the server answers.
func (l *local) launch(ctx context.Context) error {
	if l.running != nil && !l.running.ended() {
		return errors.New("it is running already")
	}
	logFile, err := os.OpenFile(filepath.Join(l.dir, "output.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open its log: %w", err)
	}
	defer logFile.Close()
	cmd := l.command()
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.Dir = l.dir
	cmd.SysProcAttr = attributes(l.cred)
	if l.running, err = spawn(cmd); err != nil {
		return err
	}
	return l.wait(ctx)
}

// start is launch for a server that was killed a moment ago: what it left
// behind (Postgres's own children, above all) may refuse the first tries.
func (l *local) start(ctx context.Context) error {
	const tries = 10
	for try := 1; ; try++ {
		err := l.launch(ctx)
		if err == nil || try == tries || !l.running.ended() {
			return err
		}
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

func (l *local) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		err := l.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-l.running.done:
			return fmt.Errorf("it ended before it answered; its last lines:\n%s", l.tail())
		case <-ctx.Done():
			return fmt.Errorf("it did not answer: %w; its last lines:\n%s", err, l.tail())
		}
	}
}

func (l *local) tail() string {
	out, err := os.ReadFile(filepath.Join(l.dir, "output.log"))
	if err != nil {
		return err.Error()
	}
	return string(out[max(0, len(out)-2000):])
}

func (l *local) kill(ctx context.Context) error { return l.running.end(ctx, syscall.SIGKILL) }

func (l *local) stop(ctx context.Context) error { return l.running.end(ctx, l.soft) }

func (l *local) remove() error {
	if l.running != nil {
		l.running.kill()
	}
	for i := len(l.cleanup) - 1; i >= 0; i-- {
		l.cleanup[i]()
	}
	forget(l.dir)
	return os.RemoveAll(l.dir)
}

// programExists is replaced in tests of what happens on a bare machine.
var programExists = isProgram

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}

// find returns the first program that exists: the names in PATH, then the
// patterns as files, the last match of each first (the newest version).
func find(names []string, patterns ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil && programExists(path) {
			return path, nil
		}
	}
	for _, pattern := range patterns {
		matches, _ := filepath.Glob(pattern)
		for i := len(matches) - 1; i >= 0; i-- {
			if programExists(matches[i]) {
				return matches[i], nil
			}
		}
	}
	return "", fmt.Errorf("%w: no program of %v %v", errNotHere, names, patterns)
}

// otherThanRoot returns the user that a server which refuses root runs as, nil
// when this process is not root.
func otherThanRoot(names ...string) (*credential, error) {
	if os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // nil is "as I am"
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &credential{uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("%w: no user of %v to run as instead of root", errNotHere, names)
}
