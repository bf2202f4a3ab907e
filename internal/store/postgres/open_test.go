package postgres_test

import (
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/store/postgres"
	"github.com/hookonce/hookonce/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }

func TestOpenGivesAWorkingPool(t *testing.T) {
	db, err := postgres.Open(t.Context(), testenv.Postgres(t), postgres.Options{MaxConns: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for setting, want := range map[string]string{
		"application_name": "hookonce", "plan_cache_mode": "force_custom_plan", "statement_timeout": "0",
	} {
		var got string
		if err := db.QueryRowContext(t.Context(), "select current_setting($1)", setting).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
	if n := db.Stats().MaxOpenConnections; n != 3 {
		t.Errorf("at most %d connections, want 3", n)
	}
}

func TestTheDSNHasTheLastWord(t *testing.T) {
	u, err := url.Parse(testenv.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("application_name", "shop")
	q.Set("plan_cache_mode", "auto")
	u.RawQuery = q.Encode()
	db, err := postgres.Open(t.Context(), u.String(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var app, plans string
	err = db.QueryRowContext(t.Context(), "select current_setting('application_name'), current_setting('plan_cache_mode')").Scan(&app, &plans)
	if err != nil || app != "shop" || plans != "auto" {
		t.Errorf("got %q, %q, %v", app, plans, err)
	}
}

func TestErrorsHoldNoPassword(t *testing.T) {
	for _, dsn := range []string{
		"postgres://u:s3cret@host:notaport/db",
		"postgres://u:s3cret@host/db?sslmode=perhaps",
		"postgres//u:s3cret@host",
		"host=h password=s3cret port=x",
		"postgres://u:s3cr%zzet@host/db?port=s3cret",
	} {
		_, err := postgres.Open(t.Context(), dsn, postgres.Options{})
		if !errors.Is(err, postgres.ErrDSN) || strings.Contains(err.Error(), "s3cr") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
	db, err := postgres.Open(t.Context(), "postgres://u:s3cret@127.0.0.1:1/db?sslmode=disable", postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.PingContext(t.Context())
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("ping: %v", err)
	}
}
