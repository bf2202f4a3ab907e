// Command harness runs a command with the servers that tests need:
//
//	harness go test ./...
//
// It starts RabbitMQ and Postgres once, names them in the environment of the
// command (see internal/testenv), prints which source each server came from,
// and ends and removes everything when the command is over, whatever its end:
// exit, SIGINT or SIGTERM. Its exit code is the command's. Servers that the
// environment names already are left as they are.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/hookonce/hookonce/internal/testenv/server"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "harness:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return 2, errors.New("say what to run, such as `harness go test ./...` does")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	defer func() { err = errors.Join(err, server.CloseEngine()) }()

	servers, err := start(ctx)
	if err != nil {
		return 1, err
	}
	defer func() {
		for _, s := range servers {
			err = errors.Join(err, s.Close())
		}
	}()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), environment(servers)...)
	return server.Run(ctx, cmd)
}

// start opens what the whole run shares, and one Redis only to learn where the
// tests' own ones will come from.
func start(ctx context.Context) ([]*server.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, 6*time.Minute)
	defer cancel()
	kinds := []server.Kind{server.Postgres, server.RabbitMQ, server.Redis}
	begin := time.Now()
	servers, err := server.OpenAll(ctx, kinds...)
	if err != nil {
		return nil, err
	}
	for i, s := range servers {
		how := "one for this run"
		if kinds[i] == server.Redis && !s.Shared {
			how = "one for each test"
		}
		fmt.Printf("%-9s %s, %s%s\n", string(kinds[i])+":", s.From, how, passed(s))
	}
	fmt.Printf("servers ready after %.1f s\n", time.Since(begin).Seconds())
	redis := servers[2]
	return servers[:2], redis.Close()
}

// passed explains in one line why earlier sources were not taken.
func passed(s *server.Server) string {
	if s.Passed == nil {
		return ""
	}
	return " (" + strings.ReplaceAll(s.Passed.Error(), "\n", "; ") + ")"
}

func environment(servers []*server.Server) []string {
	env := []string{
		server.EnvPostgres + "=" + servers[0].URL,
		server.EnvRabbitMQ + "=" + servers[1].URL,
		server.EnvRabbitMQAPI + "=" + servers[1].API,
	}
	if server.PullFailed() { // the tests need not wait for the same registry again
		env = append(env, server.EnvContainers+"=present")
	}
	return env
}
