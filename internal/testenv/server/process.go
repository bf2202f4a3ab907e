package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// process is one running child. It gets SIGKILL from the kernel when this
// process ends in whatever way.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the child has been waited for
}

// spawn starts the command. The kernel sends the parent-death signal when the
// *thread* that started the child ends, so the child is started from a thread
// that belongs to it for its whole life.
func spawn(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended shows in its log
		}
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// end sends the signal and waits for the child's end.
func (p *process) end(ctx context.Context, sig os.Signal) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		select {
		case <-p.done: // it ended by itself in between
			return nil
		default:
			return fmt.Errorf("send %v: %w", sig, err)
		}
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("it did not end on %v: %w", sig, context.Cause(ctx))
	}
}

// kill ends the child and whatever is left of its process group.
func (p *process) kill() {
	killGroup(p.cmd.Process.Pid)
	_ = p.end(context.Background(), syscall.SIGKILL)
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
