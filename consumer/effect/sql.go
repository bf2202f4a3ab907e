package effect

import (
	"fmt"
	"io"
	"strconv"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
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

// Compile checks the effect and returns what fills its statements in for an
// event. All problems are in the error, see [Problems].
func (s SQL) Compile() (func(e hookonce.Event) ([]consumer.Statement, error), error) {
	var p problems
	params := make(map[string]param, len(s.Params))
	for name, text := range s.Params {
		one, err := parseParam(text)
		if err != nil {
			p.bad("params."+name, "%v", err)
		}
		params[name] = one
	}
	if len(s.Statements) == 0 {
		p.bad("sql", "no SQL statement")
	}
	statements := make([]sqltext.Statement, len(s.Statements))
	for i, text := range s.Statements {
		st, err := sqltext.Parse(text)
		if err != nil {
			p.bad(at("sql", i, len(s.Statements)), "the statement %v", err)
		}
		for _, name := range st.Names {
			if _, ok := s.Params[name]; !ok {
				p.bad(at("sql", i, len(s.Statements)), "parameter :%s is not listed under params", name)
			}
		}
		statements[i] = st
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return func(e hookonce.Event) ([]consumer.Statement, error) {
		in := input(&e)
		out := make([]consumer.Statement, len(statements))
		for i, st := range statements {
			args := make([]any, len(st.Names))
			for j, name := range st.Names {
				args[j] = params[name].value(&e, in, s.Flavor)
			}
			out[i] = consumer.Statement{Text: st.Text, Args: args}
		}
		return out, nil
	}, nil
}

// Preview writes the statements that an event leads to, with their values.
func (s SQL) Preview(w io.Writer, e hookonce.Event) error {
	fill, err := s.Compile()
	if err != nil {
		return err
	}
	statements, err := fill(e)
	if err != nil {
		return err
	}
	for i, st := range statements {
		fmt.Fprintln(w, s.Statements[i])
		parsed, err := sqltext.Parse(s.Statements[i])
		if err != nil {
			return err
		}
		for j, name := range parsed.Names {
			fmt.Fprintf(w, "  :%s = %s\n", name, literal(st.Args[j]))
		}
	}
	return nil
}

// literal is a parameter's value for the eye.
func literal(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case string:
		return strconv.Quote(shorten([]byte(v), 1000))
	case []byte:
		return strconv.Quote(shorten(v, 1000))
	}
	return fmt.Sprint(v)
}
