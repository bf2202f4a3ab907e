package load_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// envSetup makes this program a server; its value is a setup.
const envSetup = "HOOKONCE_LOAD_SETUP"

// setup is what a child serves.
type setup struct {
	Kind   string // bare, hmac, usual, receiver, fill, drain, raw, consume or consume-raw
	Effect string // what a consumer does with each event
	Store  string // redis, sqlite, postgres or hybrid
	Fsync  string // Redis: appendfsync
	Broker bool   // publish what was claimed
	Keep   bool   // take the data as it is

	Redis, Postgres, AMQP, Dir string // where the servers are
	Events                     int    // how many to fill in or to publish
}

// child is a server in a process of its own. It is asked line by line through
// its standard input, and ends with it.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	addr  string
	stop  context.CancelFunc
	ended bool
}

func startChild(ctx context.Context, s setup) (*child, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), envSetup+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = 10 * time.Second
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		stop()
		return nil, fmt.Errorf("start the server %s: %w", s.Kind, err)
	}
	c := &child{cmd: cmd, in: in, out: bufio.NewReader(out), stop: stop}
	if c.addr, err = c.reply(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the server %s: %w", s.Kind, err), c.close())
	}
	return c, nil
}

// ask sends a command and waits for the answer.
func (c *child) ask(command string) (string, error) {
	if _, err := io.WriteString(c.in, command+"\n"); err != nil {
		return "", err
	}
	answer, err := c.reply()
	if err != nil {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	return answer, nil
}

func (c *child) reply() (string, error) {
	line, err := c.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the server's process ended: %w", err)
	}
	line = strings.TrimSpace(line)
	if text, failed := strings.CutPrefix(line, "error "); failed {
		return "", errors.New(text)
	}
	return line, nil
}

// number asks for a number.
func (c *child) number(command string) (float64, error) {
	text, err := c.ask(command)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(text, 64)
}

// close ends the server and waits for it.
func (c *child) close() error {
	if c.ended {
		return nil
	}
	c.ended = true
	defer c.stop()
	_ = c.in.Close() // asks it to end
	return c.cmd.Wait()
}
