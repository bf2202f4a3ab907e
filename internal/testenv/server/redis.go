package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// redisFlags make every confirmed write durable before its answer.
var redisFlags = []string{"--appendonly", "yes", "--appendfsync", "always", "--save", ""}

func localRedis(context.Context) (*Server, *local, error) {
	program, err := find([]string{"redis-server", "valkey-server"}, "/usr/bin/redis-server", "/usr/local/bin/redis-server")
	if err != nil {
		return nil, nil, err
	}
	ports, release, err := leases(1)
	if err != nil {
		return nil, nil, err
	}
	dir, err := tempDir(Redis)
	if err != nil {
		release()
		return nil, nil, err
	}
	address := "127.0.0.1:" + ports[0].String()
	l := &local{
		dir: dir,
		command: func() *exec.Cmd {
			args := append([]string{"--port", ports[0].String(), "--bind", "127.0.0.1", "--dir", dir}, redisFlags...)
			return exec.Command(program, args...)
		},
		ready:   func(ctx context.Context) error { return redisAnswers(ctx, address) },
		soft:    syscall.SIGTERM,
		cleanup: []func(){release},
	}
	return &Server{URL: "redis://" + address + "/0", From: "private process (" + program + ")"}, l, nil
}

// redisAnswers is nil once PING gives PONG: not before the data is loaded.
func redisAnswers(ctx context.Context, address string) error {
	conn, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "+PONG") {
		return errors.New("redis says " + strings.TrimSpace(line))
	}
	return nil
}

// dial opens a connection that ends by itself after two seconds.
func dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}
