package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// postgresFlags: several packages share one server, each with its own pools.
var postgresFlags = []string{"-c", "max_connections=400", "-c", "dynamic_shared_memory_type=mmap"}

func localPostgres(ctx context.Context) (*Server, *local, error) {
	program, err := find(nil, "/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres", "/usr/local/pgsql/bin/postgres")
	if err != nil {
		if program, err = find([]string{"postgres"}); err != nil {
			return nil, nil, err
		}
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return nil, nil, err
	}
	cred, err := otherThanRoot("postgres", "nobody")
	if err != nil {
		return nil, nil, err
	}
	ports, release, err := leases(1)
	if err != nil {
		return nil, nil, err
	}
	dir, err := tempDir(Postgres)
	if err != nil {
		release()
		return nil, nil, err
	}
	url := "postgres://postgres@127.0.0.1:" + ports[0].String() + "/postgres?sslmode=disable"
	l := &local{
		dir: dir,
		command: func() *exec.Cmd {
			args := append([]string{
				"-D", filepath.Join(dir, "data"), "-p", ports[0].String(),
				"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
			}, postgresFlags...)
			return exec.Command(program, args...)
		},
		ready:   func(ctx context.Context) error { return postgresAnswers(ctx, url) },
		cred:    cred,
		soft:    syscall.SIGINT, // SIGTERM would wait for every client to leave
		cleanup: []func(){release},
	}
	if err := initPostgres(ctx, program, dir, cred); err != nil {
		_ = l.remove()
		return nil, nil, err
	}
	return &Server{URL: url, From: "private process (" + program + ")"}, l, nil
}

// initPostgres makes the data folder with initdb, which lies beside postgres.
func initPostgres(ctx context.Context, program, dir string, cred *credential) error {
	if cred != nil {
		if err := os.Chown(dir, int(cred.uid), int(cred.gid)); err != nil {
			return fmt.Errorf("give the data folder to postgres: %w", err)
		}
	}
	initdb := exec.CommandContext(ctx, filepath.Join(filepath.Dir(program), "initdb"),
		"-D", filepath.Join(dir, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	initdb.Dir = dir
	initdb.SysProcAttr = asUser(cred)
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

func postgresAnswers(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
