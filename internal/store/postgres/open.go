// Package postgres speaks to Postgres.
//
//	db, err := postgres.Open(ctx, dsn, postgres.Options{})
//
// gives a *sql.DB over pgx for the consumers' inbox and their effects, whose
// connections come and go as they are needed.
//
//	store, err := postgres.OpenStore(ctx, postgres.StoreOptions{DSN: dsn})
//
// gives the claim store, see [Store].
//
// # PgBouncer
//
// Nothing here keeps state in a session, so transaction pooling works. Tell
// pgx not to keep prepared statements either, in the DSN:
//
//	postgres://user@pgbouncer:6432/db?default_query_exec_mode=exec
//
// (cache_describe does as well). This also leaves out the setting
// plan_cache_mode, which PgBouncer refuses at connect.
//
// # Several hosts
//
// A DSN may name several hosts and choose among them:
//
//	postgres://user@pg1,pg2:5432/db?target_session_attrs=read-write
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Options set up the pool; zero fields take their default.
type Options struct {
	// MaxConns bounds the connections that are open at once. 10.
	MaxConns int
	// MaxIdleTime closes a connection that was not used for so long. 5 minutes.
	MaxIdleTime time.Duration
	// MaxLifetime closes a connection of this age when it is next idle, so that
	// load spreads again after a fail-over. 30 minutes.
	MaxLifetime time.Duration
	// AppName is shown in pg_stat_activity unless the DSN names another. hookonce.
	AppName string
}

// Defaults of Options and [StoreOptions].
const (
	DefaultMaxConns    = 10
	DefaultMaxIdleTime = 5 * time.Minute
	DefaultMaxLifetime = 30 * time.Minute
	DefaultAppName     = "hookonce"
	connectTimeout     = 10 * time.Second
)

// ErrDSN says that a DSN cannot be read. Its text is never repeated: it may
// hold a password.
var ErrDSN = errors.New("the Postgres DSN cannot be read (it is not shown, as it may hold a password); " +
	"it must look like postgres://user:password@host:5432/database?sslmode=verify-full")

// Open prepares a pool for a DSN, a URL or key=value pairs, completed by the
// usual PG* environment. It does not connect yet: ping the database to see
// whether it answers. Errors of later connections name host, user and
// database, never the password.
//
// No statement timeout is set: effects may take as long as their own timeout
// allows. Plans are made for each execution (plan_cache_mode), because one
// cached while the tables were nearly empty would stay a sequential scan; a
// DSN with plan_cache_mode of its own keeps it.
func Open(ctx context.Context, dsn string, o Options) (*sql.DB, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, ErrDSN
	}
	o.fill()
	settings(cfg, o.AppName)
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(o.MaxConns)
	db.SetMaxIdleConns(o.MaxConns) // database/sql keeps 2 and would dial again under load
	db.SetConnMaxIdleTime(o.MaxIdleTime)
	db.SetConnMaxLifetime(o.MaxLifetime)
	return db, nil
}

// settings completes what a connection asks for; the DSN has the last word.
func settings(cfg *pgx.ConnConfig, app string) {
	set := func(param, value string) {
		if _, ok := cfg.RuntimeParams[param]; !ok {
			cfg.RuntimeParams[param] = value
		}
	}
	set("application_name", app)
	// Only a named prepared statement can get a plan that is used again, and a
	// pooler that has none of those refuses the setting.
	if cfg.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		set("plan_cache_mode", "force_custom_plan")
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
}

func (o *Options) fill() {
	if o.MaxConns <= 0 {
		o.MaxConns = DefaultMaxConns
	}
	if o.MaxIdleTime <= 0 {
		o.MaxIdleTime = DefaultMaxIdleTime
	}
	if o.MaxLifetime <= 0 {
		o.MaxLifetime = DefaultMaxLifetime
	}
	if o.AppName == "" {
		o.AppName = DefaultAppName
	}
}
