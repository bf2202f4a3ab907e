package testenv

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// createDatabase makes a database of its own on the server for the test.
func createDatabase(t testing.TB, server string) string {
	t.Helper()
	name := uniqueName()
	if err := execPostgres(server, "create database "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := execPostgres(server, "drop database if exists "+name+" with (force)"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("the URL of the Postgres server cannot be read; it must look like postgres://user@host:5432/postgres")
	}
	u.Path = "/" + name
	return u.String()
}

func execPostgres(server, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}
