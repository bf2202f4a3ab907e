package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/hookonce/hookonce"
)

// state is the SQLSTATE of an error of the server; empty for any other.
func state(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// isData says that the data of an item is at fault, not the store: a value
// that the server cannot take, or a constraint that refuses it. What a table,
// a right or a setting is missing is no fault of the data: the event must come
// again.
func isData(err error) bool {
	s := state(err)
	return strings.HasPrefix(s, "22") || strings.HasPrefix(s, "23") || strings.HasPrefix(s, "54")
}

// isConflict says that the server gave this statement up in favour of another
// one, and wrote nothing; doing it again is right.
func isConflict(err error) bool {
	s := state(err)
	return s == "40P01" || s == "40001"
}

// unknown notes whether the server answered, and makes an error wrap
// hookonce.ErrUnknown.
func (s *Store) unknown(err error) error {
	if err == nil {
		s.o.Metrics.StoreUp.WithLabelValues("postgres").Set(1)
		return nil
	}
	if errors.Is(err, hookonce.ErrUnknown) {
		return err
	}
	if !errors.Is(err, context.Canceled) {
		s.o.Metrics.StoreUp.WithLabelValues("postgres").Set(0)
	}
	if state(err) == "25006" || endsAll(err) {
		// After a fail-over the connections may stay with what is a standby now;
		// new ones look for the primary again. And where the server has ended one
		// connection, the idle ones are as dead, and would each cost a claim.
		s.pool.Reset()
	}
	if errors.Is(err, puddle.ErrClosedPool) {
		err = errClosed
	}
	if hint := hint(err); hint != "" {
		return fmt.Errorf("%w: postgres: %s: %w", hookonce.ErrUnknown, hint, err)
	}
	return fmt.Errorf("%w: postgres: %w", hookonce.ErrUnknown, err)
}

// endsAll says that the server went down or let its connections go.
func endsAll(err error) bool {
	return strings.HasPrefix(state(err), "57P") || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// hint says what to do about an error of the server.
func hint(err error) string {
	switch state(err) {
	case "25006":
		return "this server is a read-only standby: name all hosts and target_session_attrs=read-write in the DSN"
	case "42P01", "3F000", "42703":
		return "a table is missing: run: hookonce migrate up"
	case "42501":
		return "this user lacks a right: grant it usage on the schema, and select, insert, update and delete on its tables"
	case "53100":
		return "the server's disk is full: free some space"
	case "53300":
		return "the server has no connection left: raise max_connections, or lower max_conns"
	case "28P01", "28000":
		return "the server refuses the user or password of the DSN"
	}
	return ""
}
