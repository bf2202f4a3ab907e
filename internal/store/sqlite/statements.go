package sqlite

import (
	"context"
	"database/sql"
	"fmt"
)

// The statements of the write connection, prepared once.
const (
	sqlCounts    = `select events, bytes from hookonce_counters`
	sqlSetCounts = `update hookonce_counters set events = ?, bytes = ?`

	sqlFindClaim = `select id, lookup, event_key, token, fingerprint, first_seen, status, answer, entry, expires
from hookonce_claims where digest = ?`
	sqlAddClaim = `insert into hookonce_claims
(digest, lookup, event_key, token, fingerprint, first_seen, status, answer, entry, expires) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlTryClaim  = sqlAddClaim + ` on conflict (digest) do nothing`
	sqlDropClaim = `delete from hookonce_claims where id = ?`
	sqlExpire    = `delete from hookonce_claims where id in
(select id from hookonce_claims where expires <= ? order by expires limit ?)`

	sqlAddEntry  = `insert into hookonce_outbox (id, at, size, event) values (?, ?, ?, ?)`
	sqlLastEntry = `select coalesce(max(seq), 0) from sqlite_sequence where name = 'hookonce_outbox'`
	sqlHasEntry  = `select count(*) from hookonce_outbox where id = ?`
	sqlSettle    = `delete from hookonce_outbox where id in (select value from json_each(?)) returning size`

	sqlAddRow    = `insert into hookonce_queue (grp, due, at, size, payload) values (?, ?, ?, ?, ?)`
	sqlDropRows  = `delete from hookonce_queue where id in (select value from json_each(?)) returning size`
	sqlRowSize   = `select size from hookonce_queue where id = ?`
	sqlChangeRow = `update hookonce_queue set due = ?, size = ?, payload = ? where id = ?`
)

func prepare(ctx context.Context, db *sql.DB) (map[string]*sql.Stmt, error) {
	stmts := map[string]*sql.Stmt{}
	for _, query := range []string{
		sqlCounts, sqlSetCounts, sqlFindClaim, sqlAddClaim, sqlTryClaim, sqlDropClaim, sqlExpire,
		sqlAddEntry, sqlHasEntry, sqlSettle, sqlAddRow, sqlDropRows, sqlRowSize, sqlChangeRow,
	} {
		stmt, err := db.PrepareContext(ctx, query)
		if err != nil {
			return stmts, fmt.Errorf("prepare %q: %w", query, err)
		}
		stmts[query] = stmt
	}
	return stmts, nil
}
