package effect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/sqltext"
)

// SQL is the effect "sql": statements in the inbox's database, in the
// transaction that records the step.
type SQL struct {
	// Statements are carried out in order.
	Statements []string
	// Params say what the statements' names stand for.
	Params map[string]string
	// Flavor is the database's.
	Flavor Flavor
}

// Compile checks the effect and returns what a consumer step runs. All
// problems are in the error.
func (s SQL) Compile() (func(ctx context.Context, tx *sql.Tx, e hookonce.Event) error, error) {
	var errs []error
	params := make(map[string]param, len(s.Params))
	for name, text := range s.Params {
		p, err := parseParam(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("parameter %s: %w", name, err))
		}
		params[name] = p
	}
	if len(s.Statements) == 0 {
		errs = append(errs, errors.New("no SQL statement"))
	}
	statements := make([]sqltext.Statement, len(s.Statements))
	for i, text := range s.Statements {
		st, err := sqltext.Parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("the statement %w", err))
		}
		for _, name := range st.Names {
			if _, ok := s.Params[name]; !ok {
				errs = append(errs, fmt.Errorf("parameter :%s is not listed under params", name))
			}
		}
		statements[i] = st
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	run := func(ctx context.Context, tx *sql.Tx, e hookonce.Event) error {
		in := input(&e)
		for _, st := range statements {
			args := make([]any, len(st.Names))
			for i, name := range st.Names {
				args[i] = params[name].value(&e, in, s.Flavor)
			}
			if _, err := tx.ExecContext(ctx, st.Text, args...); err != nil {
				return fmt.Errorf("sql: %w", err)
			}
		}
		return nil
	}
	return run, nil
}
