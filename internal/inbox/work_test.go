package inbox_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/wire"
)

// runAll begins events that must run.
func (e *env) runAll(ds ...wire.Delivery) []inbox.Lease {
	e.Helper()
	vs, err := e.Begin(e.Context(), "g", ds, tries)
	e.must(err)
	leases := make([]inbox.Lease, len(vs))
	for i, v := range vs {
		leases[i] = e.want(v, inbox.Run).Lease
	}
	return leases
}

// applyAll carries out works, again and again those whose turn did not come.
func (e *env) applyAll(works []inbox.Work) []inbox.Result {
	e.Helper()
	results := make([]inbox.Result, len(works))
	left := make([]int, len(works))
	for i := range works {
		left[i] = i
	}
	for len(left) > 0 {
		var some []inbox.Work
		for _, i := range left {
			some = append(some, works[i])
		}
		rs, err := e.Apply(e.Context(), some)
		e.must(err)
		var later []int
		for n, i := range left {
			results[i] = rs[n]
			if rs[n].Later {
				later = append(later, i)
			}
		}
		left = later
	}
	return results
}

func (e *env) events(n int) []wire.Delivery {
	ds := make([]wire.Delivery, n)
	for i, id := range ids(n) {
		ds[i] = e.event(id)
	}
	return ds
}

func (e *env) insert(id string) []inbox.Statement {
	return []inbox.Statement{{Text: "INSERT INTO tickets (id) VALUES ($1)", Args: []any{id}}}
}

// ticketWork writes a ticket, every other one by a function.
func (e *env) ticketWork(i int, l inbox.Lease) inbox.Work {
	w := inbox.Work{Lease: l, Step: inbox.Step{Name: "ticket"}, Last: true}
	if i%2 == 0 {
		w.Statements = e.insert(l.Key.ID)
		return w
	}
	w.Tx = func(tx *sql.Tx) error { return insertTicket(l.Key.ID)(e.Context(), tx) }
	return w
}

func (e *env) ticketIDs() (got []string) {
	e.Helper()
	rows, err := e.db.QueryContext(e.Context(), "SELECT id FROM tickets ORDER BY id")
	e.must(err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id string
		e.must(rows.Scan(&id))
		got = append(got, id)
	}
	e.must(rows.Err())
	return got
}

func TestWorksThatShareATransactionFailAlone(t *testing.T) {
	each(t, func(e *env) {
		e.tickets()
		ds := e.events(100)
		leases := e.runAll(ds...)
		works := make([]inbox.Work, len(leases))
		boom := errors.New("boom")
		var want []string
		for i, l := range leases {
			works[i] = e.ticketWork(i, l)
			switch i % 10 {
			case 3:
				works[i].Tx = func(tx *sql.Tx) error {
					return errors.Join(insertTicket("half")(e.Context(), tx), boom)
				}
			case 4:
				works[i].Statements = append(e.insert("half"), inbox.Statement{Text: "INSERT INTO nowhere VALUES (1)"})
			default:
				want = append(want, l.Key.ID)
			}
		}
		results := e.applyAll(works)
		for i, r := range results {
			bad := i%10 == 3 || i%10 == 4
			if bad != (r.Err != nil) || (i%10 == 3) != errors.Is(r.Err, boom) || bad == (r.State == inbox.StepDone) {
				e.Errorf("work %d: %+v", i, r)
			}
		}
		if diff := cmp.Diff(want, e.ticketIDs()); diff != "" {
			e.Error(diff)
		}
		for i, d := range ds {
			want := inbox.Done
			if results[i].Err != nil {
				want = inbox.Running
			}
			if r := e.record(d); r.State != want {
				e.Errorf("event %d is %s", i, r.State)
			}
		}
	})
}

func TestALostLeaseRollsBackItsWorkAndNoOther(t *testing.T) {
	each(t, func(e *env) {
		e.tickets()
		ds := e.events(4)
		frozen := e.runAll(ds...)
		e.clock.Add(lease)
		e.run(ds[1])
		e.run(ds[2])
		var works []inbox.Work
		for i, l := range frozen {
			works = append(works, e.ticketWork(i, l))
		}
		results := e.applyAll(works)
		for i, r := range results {
			if lost := i == 1 || i == 2; lost != errors.Is(r.Err, inbox.ErrLeaseLost) {
				e.Errorf("work %d: %+v", i, r)
			}
		}
		if diff := cmp.Diff([]string{"k0000", "k0003"}, e.ticketIDs()); diff != "" {
			e.Error(diff)
		}
	})
}

func TestAStatementThatCannotBeParsedIsItsOwnersFailure(t *testing.T) {
	each(t, func(e *env) {
		e.tickets()
		leases := e.runAll(e.events(3)...)
		works := []inbox.Work{e.ticketWork(0, leases[0]), e.ticketWork(0, leases[1]), e.ticketWork(0, leases[2])}
		works[2].Statements = []inbox.Statement{{Text: "INSERT INTO nowhere VALUES (1)"}}
		for i, r := range e.applyAll(works) {
			if (i == 2) != (r.Err != nil) {
				e.Errorf("work %d: %+v", i, r)
			}
		}
	})
}

// Two transactions that change the same rows in another order end in a
// deadlock in Postgres: nothing of it is lost or done twice.
func TestADeadlockAsksToBeTriedOneByOne(t *testing.T) {
	each(t, func(e *env) {
		if e.dialect.String() == "sqlite" {
			return // one writer at a time
		}
		e.tickets()
		e.must(insertAll(e, "x", "y"))
		leases := e.runAll(e.events(4)...)
		var both sync.WaitGroup
		both.Add(2)
		const change = "UPDATE tickets SET id = id WHERE id = $1"
		meet := func(l inbox.Lease, id string) inbox.Work {
			met := sync.OnceFunc(func() { both.Done(); both.Wait() })
			return inbox.Work{Lease: l, Step: inbox.Step{Name: "s"}, Last: true, Tx: func(tx *sql.Tx) error {
				_, err := tx.ExecContext(e.Context(), change, id)
				met()
				return err
			}}
		}
		cross := func(l inbox.Lease, id string) inbox.Work {
			return inbox.Work{
				Lease: l, Step: inbox.Step{Name: "s"}, Last: true,
				Statements: []inbox.Statement{{Text: change, Args: []any{id}}},
			}
		}
		pairs := [][]inbox.Work{
			{meet(leases[0], "x"), cross(leases[1], "y")},
			{meet(leases[2], "y"), cross(leases[3], "x")},
		}
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for i, works := range pairs {
			wg.Go(func() { _, errs[i] = e.Apply(e.Context(), works) })
		}
		wg.Wait()
		apart := slices.IndexFunc(errs, func(err error) bool { return errors.Is(err, inbox.ErrApart) })
		if apart < 0 || errs[1-apart] != nil {
			e.Fatalf("errors %v; want one that asks to go apart", errs)
		}
		for _, w := range pairs[apart] {
			if r := e.apply(w); r.Err != nil {
				e.Error(r.Err)
			}
		}
	})
}

func insertAll(e *env, names ...string) error {
	for _, id := range names {
		if _, err := e.db.ExecContext(e.Context(), "INSERT INTO tickets (id) VALUES ($1)", id); err != nil {
			return err
		}
	}
	return nil
}

func TestAConstraintThatFailsAtTheCommitIsTheGuiltyOnesAlone(t *testing.T) {
	each(t, func(e *env) {
		_, err := e.db.ExecContext(e.Context(), "CREATE TABLE orders (id text PRIMARY KEY)")
		e.must(err)
		_, err = e.db.ExecContext(e.Context(), "CREATE TABLE tickets (id text REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)")
		e.must(err)
		if e.dialect.String() == "sqlite" {
			_, err = e.db.ExecContext(e.Context(), "PRAGMA foreign_keys = ON")
			e.must(err)
		}
		leases := e.runAll(e.events(2)...)
		works := []inbox.Work{e.ticketWork(0, leases[0]), e.ticketWork(0, leases[1])}
		if _, err := e.Apply(e.Context(), works); !errors.Is(err, inbox.ErrApart) {
			e.Fatalf("error %v", err)
		}
		if r := e.apply(works[0]); r.Err == nil {
			e.Error("no order, and no error")
		}
	})
}

func onceWork(l inbox.Lease, s inbox.Step, value string) inbox.Work {
	return inbox.Work{Lease: l, Step: s, Once: &inbox.Once{Value: value}}
}

func TestOncePerInsideIsDoneForOneEvent(t *testing.T) {
	each(t, func(e *env) {
		e.tickets()
		ds := e.events(20)
		leases := e.runAll(ds...)
		var works []inbox.Work
		for i, l := range leases {
			w := e.ticketWork(i, l)
			w.Once = &inbox.Once{Value: fmt.Sprint("order ", i%2)}
			works = append(works, w)
		}
		// At the same time, and in transactions that several share.
		var wg sync.WaitGroup
		results := make([]inbox.Result, len(works))
		for part := range slices.Chunk([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, 5) {
			wg.Go(func() {
				var some []inbox.Work
				for _, i := range part {
					some = append(some, works[i])
				}
				rs, err := e.Apply(e.Context(), some)
				if err != nil && !errors.Is(err, inbox.ErrApart) {
					e.Error(err)
					return
				}
				for n, i := range part {
					if err != nil || rs[n].Later {
						results[i] = e.apply(works[i])
						continue
					}
					results[i] = rs[n]
				}
			})
		}
		wg.Wait()
		var done []int
		for i, r := range results {
			switch r.State {
			case inbox.StepDone:
				done = append(done, i%2)
			case inbox.StepSkipped:
			default:
				e.Errorf("work %d: %+v", i, r)
			}
		}
		slices.Sort(done)
		if diff := cmp.Diff([]int{0, 1}, done); diff != "" || e.countTickets() != 2 {
			e.Errorf("%d tickets\n%s", e.countTickets(), diff)
		}
		for i, d := range ds {
			r := e.record(d)
			if r.State != inbox.Done || len(r.Steps) != 1 || r.Steps[0].State != results[i].State {
				e.Errorf("event %d: %+v", i, r)
			}
		}
	})
}

func TestOncePerOutsideWaitsForItsHolder(t *testing.T) {
	started, done := inbox.Step{Name: "mail", State: inbox.StepStarted}, inbox.Step{Name: "mail", State: inbox.StepDone}
	for name, c := range map[string]struct {
		end  func(e *env, d wire.Delivery, l inbox.Lease) // of the holder
		want func(inbox.Result) bool
	}{
		"while it runs": {
			func(*env, wire.Delivery, inbox.Lease) {},
			func(r inbox.Result) bool { return !r.Until.IsZero() },
		},
		"while it waits for its next try": {
			func(e *env, _ wire.Delivery, l inbox.Lease) {
				e.must(e.Retry(e.Context(), l, inbox.Step{Name: "mail"}, "no", e.clock.Now().Add(5*time.Minute)))
			},
			func(r inbox.Result) bool { return !r.Until.IsZero() },
		},
		"done": {
			func(e *env, _ wire.Delivery, l inbox.Lease) { e.must(e.apply(onceWork(l, done, "order 1")).Err) },
			func(r inbox.Result) bool {
				return r.State == inbox.StepSkipped && r.Detail == "once_per: done for shop/a"
			},
		},
		"dead, not tried": {
			func(e *env, d wire.Delivery, l inbox.Lease) {
				e.must(e.Bury(e.Context(), l, inbox.Letter{Event: d.Event, Reason: inbox.Failed, Step: "mail"}))
			},
			func(r inbox.Result) bool { return r.State == inbox.StepStarted },
		},
		"dead, perhaps done": {
			func(e *env, d wire.Delivery, l inbox.Lease) {
				e.must(e.Bury(e.Context(), l, inbox.Letter{Event: d.Event, Reason: inbox.Unknown, Step: "mail", StepState: inbox.StepUnknown}))
			},
			func(r inbox.Result) bool {
				var held *inbox.HeldError
				return errors.As(r.Err, &held) && held.Key.String() == "shop/a"
			},
		},
		"discarded, not tried": {
			func(e *env, d wire.Delivery, l inbox.Lease) {
				e.must(e.Bury(e.Context(), l, inbox.Letter{Event: d.Event, Reason: inbox.Failed, Step: "mail"}))
				ok, err := e.discard("g", d, "no")
				e.must(err)
				if !ok {
					e.Fatal("not discarded")
				}
			},
			func(r inbox.Result) bool { return r.State == inbox.StepStarted },
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				a, b := e.event("a"), e.event("b")
				first := e.run(a)
				if r := e.apply(onceWork(first, started, "order 1")); r.Err != nil || r.State != inbox.StepStarted {
					e.Fatalf("%+v", r)
				}
				c.end(e, a, first)
				r := e.apply(onceWork(e.run(b), started, "order 1"))
				if !c.want(r) {
					e.Errorf("%+v", r)
				}
				if r := e.apply(onceWork(e.run(e.event("c")), started, "order 2")); r.State != inbox.StepStarted {
					e.Errorf("another value: %+v", r)
				}
			})
		})
	}
}

func TestOncePerFollowsARename(t *testing.T) {
	each(t, func(e *env) {
		e.tickets()
		w := e.ticketWork(0, e.run(e.event("a")))
		w.Once = &inbox.Once{Value: "order 1"}
		e.apply(w)
		w = e.ticketWork(0, e.run(e.event("b")))
		w.Step.Name, w.Once = "issue-ticket", &inbox.Once{Value: "order 1", Was: []string{"ticket"}}
		if r := e.apply(w); r.State != inbox.StepSkipped {
			e.Errorf("%+v", r)
		}
	})
}

func version(t *testing.T, text string) inbox.Version {
	t.Helper()
	v, err := inbox.ParseVersion(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestOnlyLatestAppliesNoOlderVersion(t *testing.T) {
	each(t, func(e *env) {
		for i, c := range []struct {
			entity, version string
			want            inbox.StepState
		}{
			{"order 1", "1000001", inbox.StepDone},
			{"order 1", "1000000", inbox.StepStale},
			{"order 1", "1000001.0", inbox.StepDone}, // equal: applied
			{"order 1", "999", inbox.StepStale},
			{"order 1", "1000002", inbox.StepDone},
			{"order 2", "5", inbox.StepDone},
			{"order 3", "2026-03-01T12:00:00Z", inbox.StepDone},
			{"order 3", "2026-03-01T08:59:59-03:00", inbox.StepStale},
			{"order 3", "2026-03-01 12:00:00.001", inbox.StepDone},
		} {
			r := e.apply(inbox.Work{
				Lease: e.run(e.event(fmt.Sprint(i))), Step: inbox.Step{Name: "project"}, Last: true, Statements: []inbox.Statement{},
				Latest: &inbox.Latest{Entity: c.entity, Version: version(e.T, c.version)},
			})
			if r.Err != nil || r.State != c.want {
				e.Errorf("%s of %s: %+v, want %s", c.version, c.entity, r, c.want)
			}
		}
		r := e.apply(inbox.Work{
			Lease: e.run(e.event("mixed")), Step: inbox.Step{Name: "project"}, Statements: []inbox.Statement{},
			Latest: &inbox.Latest{Entity: "order 3", Version: version(e.T, "7")},
		})
		if !errors.Is(r.Err, inbox.ErrVersion) {
			e.Errorf("a number behind a time: %+v", r)
		}
	})
}

func TestOnlyLatestOutsideLetsNoEffectOvertakeAnother(t *testing.T) {
	each(t, func(e *env) {
		work := func(l inbox.Lease, state inbox.StepState, v string) inbox.Work {
			return inbox.Work{
				Lease: l, Step: inbox.Step{Name: "tell", State: state},
				Latest: &inbox.Latest{Entity: "order 1", Version: version(e.T, v)},
			}
		}
		old, next := e.run(e.event("old")), e.run(e.event("next"))
		e.apply(work(old, inbox.StepStarted, "1"))
		if r := e.apply(work(next, inbox.StepStarted, "2")); r.Until.IsZero() {
			e.Errorf("begun while the older one is on its way: %+v", r)
		}
		e.apply(work(old, inbox.StepDone, "1"))
		if r := e.apply(work(next, inbox.StepStarted, "2")); r.State != inbox.StepStarted {
			e.Errorf("%+v", r)
		}
		e.apply(work(next, inbox.StepDone, "2"))
		if r := e.apply(work(e.run(e.event("late")), inbox.StepStarted, "1")); r.State != inbox.StepStale {
			e.Errorf("%+v", r)
		}
	})
}

func TestValuesAndEntitiesAreForgottenAfterTheTTL(t *testing.T) {
	each(t, func(e *env) {
		w := onceWork(e.run(e.event("a")), inbox.Step{Name: "s"}, "order 1")
		w.Statements, w.Last = []inbox.Statement{}, true
		w.Latest = &inbox.Latest{Entity: "order 1", Version: version(e.T, "1")}
		e.must(e.apply(w).Err)
		held := e.event("b")
		e.apply(onceWork(e.run(held), inbox.Step{Name: "s", State: inbox.StepStarted}, "order 2"))
		e.clock.Add(ttl + time.Second)
		for {
			n, err := e.Expire(e.Context(), 10)
			e.must(err)
			if n == 0 {
				break
			}
		}
		if e.count("once") != 1 || e.count("latest") != 0 {
			e.Errorf("%d values, %d entities; want the one that is held", e.count("once"), e.count("latest"))
		}
	})
}

func FuzzVersionsAreRefusedOrOrdered(f *testing.F) {
	for _, s := range []string{"1", "1e3", "-0.5", "2026-03-01", "2026-03-01T12:00:00.5+01:00", "v2", "1e999999999", ""} {
		f.Add(s, "1000")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		v, err1 := inbox.ParseVersion(a)
		w, err2 := inbox.ParseVersion(b)
		if err1 != nil || err2 != nil {
			return
		}
		x, err1 := v.Compare(w)
		y, err2 := w.Compare(v)
		if (err1 == nil) != (err2 == nil) || x != -y {
			t.Errorf("%q and %q: %d %v, %d %v", a, b, x, err1, y, err2)
		}
		again, err := inbox.ParseVersion(v.String())
		if c, err2 := v.Compare(again); err != nil || err2 != nil || c != 0 {
			t.Errorf("%q is not itself once written: %v, %v, %d", a, err, err2, c)
		}
	})
}
