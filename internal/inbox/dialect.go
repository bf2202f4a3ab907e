package inbox

import (
	"database/sql"
	"embed"
	"errors"
	"strings"
)

//go:embed migrations
var migrations embed.FS

// Dialect is what differs between the databases: [Postgres] or [SQLite].
type Dialect struct {
	name string
	// lock ends a select that means to change what it reads. Rows that another
	// transaction has locked are left out: somebody is at work on them, and one
	// slow effect must not hold up a whole slice of deliveries.
	lock string
	// wait locks as well, but waits for others.
	wait string
	// contains is the function that finds a text ($2) in another ($1).
	contains string
	// isolation is asked for in each transaction; the rules of Begin count on
	// seeing what others have committed in the meantime.
	isolation sql.IsolationLevel
	// arrays can be arguments.
	arrays bool
	// rows is how many rows one insert writes at most: SQLite's time for
	// parameters grows with the square of their number.
	rows int
	// looseLocal lets the commit of the transaction that it is run in not wait for
	// the disk; loose and strict switch that for a connection, where there is no
	// such statement.
	looseLocal, loose, strict string
	// selfMigrating databases are brought to the newest schema by CheckSchema.
	selfMigrating bool
}

var (
	// Postgres keeps the tables in a schema of their own.
	Postgres = Dialect{
		name: "postgres", lock: " FOR UPDATE SKIP LOCKED", wait: " FOR UPDATE", contains: "strpos",
		isolation: sql.LevelReadCommitted, arrays: true, rows: 10_000,
		looseLocal: "SET LOCAL synchronous_commit TO off",
	}
	// SQLite keeps the tables beside the user's own, named hookonce_ and more.
	SQLite = Dialect{
		name: "sqlite", contains: "instr", rows: 64, selfMigrating: true,
		loose: "PRAGMA synchronous = NORMAL", strict: "PRAGMA synchronous = FULL",
	}
)

// String is "postgres" or "sqlite".
func (d Dialect) String() string { return d.name }

// prefix is what stands before each table name.
func (d Dialect) prefix(schema string) string {
	if d.name == Postgres.name {
		return quoteIdent(schema) + "."
	}
	return "hookonce_"
}

func quoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// sqlState is the SQLSTATE of a Postgres error; empty for any other.
func sqlState(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// deadlocked says that the database gave this transaction up in favour of
// another one; doing it again is right.
func deadlocked(err error) bool {
	s := sqlState(err)
	return s == "40P01" || s == "40001"
}

// constraint says that the data broke a rule of the tables.
func constraint(err error) bool {
	if s := sqlState(err); s != "" {
		return strings.HasPrefix(s, "23")
	}
	const sqliteConstraint = 19
	var e interface{ Code() int }
	return errors.As(err, &e) && e.Code()&0xff == sqliteConstraint
}
