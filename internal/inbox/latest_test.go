package inbox_test

import (
	"fmt"
	"testing"

	"github.com/hookonce/hookonce/internal/inbox"
)

// TestOnlyLatestKeepsItsOrderInASharedTransaction: the versions of one entity
// are written in the order in which they were let through, whatever order the
// statements that travel together are put in.
func TestOnlyLatestKeepsItsOrderInASharedTransaction(t *testing.T) {
	each(t, func(e *env) {
		_, err := e.db.ExecContext(e.Context(), "CREATE TABLE order_status (id text PRIMARY KEY, status text)")
		e.must(err)
		const project = "INSERT INTO order_status (id, status) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET status = excluded.status"
		// Sorted by their arguments the newest would come first.
		states := []string{"d-created", "c-paid", "b-sent", "a-delivered"}
		leases := e.runAll(e.events(2 * len(states))...)
		works := make([]inbox.Work, 0, len(leases))
		for i, state := range states {
			for j, order := range []string{"A-1", "A-2"} {
				works = append(works, inbox.Work{
					Lease: leases[2*i+j], Step: inbox.Step{Name: "project"}, Last: true,
					Statements: []inbox.Statement{{Text: project, Args: []any{order, state}}},
					Latest:     &inbox.Latest{Entity: order, Version: version(e.T, fmt.Sprint(i))},
				})
			}
		}
		for i, r := range e.applyAll(works) {
			if r.Err != nil || r.State != inbox.StepDone {
				e.Errorf("work %d: %+v", i, r)
			}
		}
		for _, order := range []string{"A-1", "A-2"} {
			var status string
			e.must(e.db.QueryRowContext(e.Context(), "SELECT status FROM order_status WHERE id = $1", order).Scan(&status))
			if status != "a-delivered" {
				e.Errorf("%s ended as %s", order, status)
			}
		}
	})
}
