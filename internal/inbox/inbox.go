package inbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Defaults of Options.
const (
	DefaultSchema = "hookonce"
	DefaultLease  = 15 * time.Second
	DefaultTTL    = 45 * 24 * time.Hour
)

// Options set up an Inbox; zero fields take their default.
type Options struct {
	// Schema is the Postgres schema of the tables; SQLite has none. hookonce.
	Schema string
	// Lease is how long a holder may be silent before another one takes its
	// event over. 15s.
	Lease time.Duration
	// TTL is how long a done or discarded event is remembered, and the greatest
	// age of a first delivery. 45 days.
	TTL time.Duration
	// Pipeline sends statements in as few round trips as it can; nil means one
	// by one. See [Pipeline].
	Pipeline Pipeline
	// Now is the time source; nil means time.Now.
	Now func() time.Time
}

// Pipeline carries out statements in their order, in the transaction tx on
// conn. The error is that of the statement with the returned number; -1 when it
// is none's own.
type Pipeline func(ctx context.Context, conn *sql.Conn, tx *sql.Tx, statements []Statement) (int, error)

// oneByOne is the Pipeline of a database without any.
func oneByOne(ctx context.Context, _ *sql.Conn, tx *sql.Tx, statements []Statement) (int, error) {
	for i, s := range statements {
		if _, err := tx.ExecContext(ctx, s.Text, s.Args...); err != nil {
			return i, err
		}
	}
	return -1, nil
}

// Inbox keeps the records of all groups in one database. Its methods may be
// called from several goroutines and processes.
type Inbox struct {
	db  *sql.DB
	d   Dialect
	o   Options
	sub *strings.Replacer // fills the table prefix into statements
}

// New makes an inbox over an open database, which stays the caller's to close.
// It does not speak to the database: see [Inbox.CheckSchema].
func New(db *sql.DB, d Dialect, o Options) *Inbox {
	if o.Schema == "" {
		o.Schema = DefaultSchema
	}
	if o.Lease <= 0 {
		o.Lease = DefaultLease
	}
	if o.TTL <= 0 {
		o.TTL = DefaultTTL
	}
	if o.Pipeline == nil {
		o.Pipeline = oneByOne
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Inbox{db: db, d: d, o: o, sub: strings.NewReplacer("{p}", d.prefix(o.Schema), "{lock}", d.lock, "{wait}", d.wait)}
}

// DB is the database under the inbox, for what shares it.
func (b *Inbox) DB() *sql.DB { return b.db }

// now is the present, in the precision that is stored.
func (b *Inbox) now() time.Time { return b.o.Now().UTC().Truncate(time.Microsecond) }

// q fills a statement's table names in.
func (b *Inbox) q(statement string) string { return b.sub.Replace(statement) }

// tx runs fn in a transaction. It rolls back when fn fails or panics, and
// hands fn's error on as it is.
func (b *Inbox) tx(ctx context.Context, what string, fn func(tx *sql.Tx) error) error {
	return b.txOn(ctx, b.db, what, fn)
}

// beginner is a *sql.DB, or one connection of it.
type beginner interface {
	BeginTx(ctx context.Context, o *sql.TxOptions) (*sql.Tx, error)
}

func (b *Inbox) txOn(ctx context.Context, on beginner, what string, fn func(tx *sql.Tx) error) error {
	tx, err := on.BeginTx(ctx, &sql.TxOptions{Isolation: b.d.isolation})
	if err != nil {
		return fmt.Errorf("inbox: %s: begin: %w", what, err)
	}
	defer func() { _ = tx.Rollback() }() // a no-op after the commit
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("inbox: %s: commit: %w", what, err)
	}
	return nil
}

// looseTx is tx without waiting for the disk. It is for what may be forgotten
// when the database's machine fails, and it alone: that an event is running.
// Whatever follows from it, a started or done record, waits for the disk, and
// brings this to it first.
func (b *Inbox) looseTx(ctx context.Context, what string, fn func(tx *sql.Tx) error) (err error) {
	if b.d.loose == "" {
		return b.tx(ctx, what, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, b.d.looseLocal); err != nil {
				return fmt.Errorf("inbox: %s: %w", what, err)
			}
			return fn(tx)
		})
	}
	conn, err := b.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("inbox: %s: begin: %w", what, err)
	}
	defer func() { _ = conn.Close() }() // back to the pool
	if _, err := conn.ExecContext(ctx, b.d.loose); err != nil {
		return fmt.Errorf("inbox: %s: %w", what, err)
	}
	defer func() {
		if _, back := conn.ExecContext(context.WithoutCancel(ctx), b.d.strict); back != nil {
			// A connection that would go on without waiting is given up.
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}()
	return b.txOn(ctx, conn, what, fn)
}

// querier is a *sql.DB or a *sql.Tx.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// exec runs one statement and counts the rows that it changed.
func (b *Inbox) exec(ctx context.Context, q querier, what, statement string, args ...any) (int64, error) {
	res, err := q.ExecContext(ctx, b.q(statement), args...)
	if err != nil {
		return 0, fmt.Errorf("inbox: %s: %w", what, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("inbox: %s: %w", what, err)
	}
	return n, nil
}

// query runs a select and gives each row to scan.
func (b *Inbox) query(ctx context.Context, q querier, what, statement string, args []any, scan func(r *sql.Rows) error) error {
	rows, err := q.QueryContext(ctx, b.q(statement), args...)
	if err != nil {
		return fmt.Errorf("inbox: %s: %w", what, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("inbox: %s: %w", what, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("inbox: %s: %w", what, err)
	}
	return nil
}

// args collects a statement's arguments and names their places.
type args []any

// add appends arguments and returns their places as a list: "$3, $4".
func (a *args) add(vs ...any) string {
	var s strings.Builder
	for i, v := range vs {
		if i > 0 {
			s.WriteString(", ")
		}
		*a = append(*a, v)
		s.WriteByte('$')
		s.WriteString(strconv.Itoa(len(*a)))
	}
	return s.String()
}

// micros is a time as it is stored; 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// fromMicros reads a stored time.
func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// blob makes nil bytes an empty value instead of NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
