package sqlite

import (
	"context"
	"database/sql"
	"fmt"
)

// migrations take a file from version i to i+1; the version is SQLite's own
// user_version. Never change one that was released: add another.
var migrations = []string{
	`
create table hookonce_claims (
  id          integer primary key,
  digest      blob    not null unique, -- first 16 bytes of SHA-256 of lookup
  lookup      blob    not null,        -- the claimed full key
  event_key   blob,                    -- the event's full key; null when the same
  token       blob    not null,
  fingerprint blob    not null,
  first_seen  integer not null,        -- all times: ms since 1970
  status      integer not null,
  answer      blob    not null,
  entry       integer not null,        -- id in hookonce_outbox; 0: none
  expires     integer not null
) strict;
create index hookonce_claims_expires on hookonce_claims (expires);

-- autoincrement: an id is never used again, also after its row is gone
create table hookonce_outbox (
  id    integer primary key autoincrement,
  at    integer not null,
  size  integer not null,
  event blob    not null
) strict;

create table hookonce_queue (
  id      integer primary key autoincrement,
  grp     text    not null,
  due     integer not null,            -- not delivered before
  at      integer not null,
  size    integer not null,
  payload blob    not null
) strict;
create index hookonce_queue_due on hookonce_queue (grp, due, id);

-- what waits in outbox and queue; written in the transaction that changes them
create table hookonce_counters (
  events integer not null,
  bytes  integer not null
) strict;
insert into hookonce_counters (events, bytes) values (0, 0);
`,
	`
-- how the keys of each source are made
create table hookonce_recipes (
  source text not null primary key,
  recipe text not null
) strict;
`,
}

// migrate brings the file to the newest version, each step in one transaction.
func migrate(ctx context.Context, db *sql.DB) error {
	var have int
	if err := db.QueryRowContext(ctx, "pragma user_version").Scan(&have); err != nil {
		return err
	}
	if have > len(migrations) {
		return fmt.Errorf("written by a newer release (schema %d, this one knows %d): start that release", have, len(migrations))
	}
	for v := have; v < len(migrations); v++ {
		if err := step(ctx, db, v); err != nil {
			return fmt.Errorf("migration to schema %d: %w", v+1, err)
		}
	}
	return nil
}

func step(ctx context.Context, db *sql.DB, v int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // no-op after commit
	if _, err := tx.ExecContext(ctx, migrations[v]); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("pragma user_version = %d", v+1)); err != nil {
		return err
	}
	return tx.Commit()
}
