package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Warnings says, a line each, what this server's configuration may lose or
// hold up; what it cannot read it says.
func (s *Store) Warnings(ctx context.Context) []string {
	set, err := s.serverSettings(ctx)
	if err != nil {
		return []string{fmt.Sprintf("postgres: its settings could not be read: %v", err)}
	}
	var out []string
	if set["fsync"] == "off" {
		out = append(out, "postgres: fsync is off: a crash of the machine may lose all of the database; set it to on")
	}
	if set["full_page_writes"] == "off" {
		out = append(out, "postgres: full_page_writes is off: a crash of the machine may damage the database; set it to on")
	}
	if set["synchronous_commit"] == "off" {
		out = append(out, "postgres: synchronous_commit is off: a crash of the server may lose about 0.6 s of accepted events and claims; "+
			"set it to on for this user or database")
	}
	if set["default_transaction_isolation"] != "read committed" {
		out = append(out, fmt.Sprintf("postgres: default_transaction_isolation is %s: concurrent claims of one key fail and are repeated; "+
			"set it to read committed for this user", set["default_transaction_isolation"]))
	}
	if set["synchronous_standby_names"] == "" && s.replicas(ctx) > 0 {
		out = append(out, "postgres: replicas are asynchronous (synchronous_standby_names is empty): a fail-over may lose "+
			"the last accepted events and claims; name a synchronous one to lose none")
	}
	return out
}

func (s *Store) serverSettings(ctx context.Context) (map[string]string, error) {
	rows, err := s.pool.Query(ctx, s.sql.warnings)
	if err != nil {
		return nil, err
	}
	set := map[string]string{}
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		set[name] = value
		return nil
	})
	return set, err
}

// replicas is how many follow this server by streaming; 0 where that is not shown.
func (s *Store) replicas(ctx context.Context) int {
	var n int
	if err := s.pool.QueryRow(ctx, "SELECT count(*) FROM pg_catalog.pg_stat_replication").Scan(&n); err != nil {
		return 0
	}
	return n
}
