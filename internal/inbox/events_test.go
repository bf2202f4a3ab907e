package inbox_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/inbox"
)

func TestEventsComeNewestFirstInPages(t *testing.T) {
	each(t, func(e *env) {
		for i, id := range ids(11) {
			d := e.event(id)
			l := e.run(d)
			switch i % 3 {
			case 0:
				e.must(e.Finish(e.Context(), l))
			case 1:
				e.must(e.Bury(e.Context(), l, inbox.Letter{Event: d.Event, Reason: inbox.Permanent, Error: "gone"}))
			}
			e.clock.Add(time.Second)
		}
		for filter, want := range map[inbox.Filter]int{
			{}:                                 11,
			{State: inbox.Done}:                4,
			{State: inbox.Running}:             3,
			{Reason: inbox.Permanent}:          4,
			{Error: "gone", State: inbox.Dead}: 4,
			{Since: e.clock.Now().Add(-2 * time.Second)}: 2,
			{Type: "*.paid", Group: "g"}:                 11,
		} {
			if got := readEvents(e, filter); len(got) != want {
				e.Errorf("%+v: %d events, want %d", filter, len(got), want)
			}
		}
		newest := func(x, y inbox.Record) int { return y.ReceivedAt.Compare(x.ReceivedAt) }
		if got := readEvents(e, inbox.Filter{}); !slices.IsSortedFunc(got, newest) {
			e.Error("not newest first")
		}
		if _, err := e.Event(e.Context(), hookonce.Key{Source: "shop", ID: "none"}); !errors.Is(err, inbox.ErrNotFound) {
			e.Errorf("err %v", err)
		}
	})
}

func readEvents(e *env, f inbox.Filter) []inbox.Record {
	e.Helper()
	var all []inbox.Record
	var after inbox.Cursor
	for {
		some, next, err := e.Events(e.Context(), f, after, 3)
		e.must(err)
		all = append(all, some...)
		if next == "" {
			return all
		}
		after = next
	}
}

func TestExpireForgetsOnlyWhatWasDoneLongAgo(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		expire := func(want int) {
			e.Helper()
			n, err := e.Expire(ctx, 100)
			e.must(err)
			if n != want {
				e.Errorf("%d expired, want %d", n, want)
			}
		}
		done, dead, discarded, retrying := e.event("done"), e.event("dead"), e.event("discarded"), e.event("retrying")
		e.must(e.step(e.run(done), inbox.Step{Name: "s"}, true, nil))
		e.bury(dead)
		e.bury(discarded)
		_, err := e.discard("g", discarded, "")
		e.must(err)
		e.must(e.Retry(ctx, e.run(retrying), inbox.Step{Name: "s"}, "no", e.clock.Now()))
		e.run(e.event("running"))
		late := e.event("late") // received with the others, done 40 days later
		l := e.run(late)
		e.clock.Add(40 * day)
		e.must(e.Finish(ctx, l))
		e.clock.Add(5 * day)
		expire(0)
		e.clock.Add(day) // 46 days
		expire(2)
		if _, err := e.Event(ctx, done.Key); !errors.Is(err, inbox.ErrNotFound) {
			e.Errorf("err %v", err)
		}
		if n := e.count("steps"); n != 1 {
			e.Errorf("%d steps left, want the retrying one's", n)
		}
		e.clock.Add(354 * day) // 400 days
		expire(1)
		expire(0)
		if n := e.count("inbox"); n != 3 {
			e.Errorf("%d left, want the dead, the retrying and the running one", n)
		}
	})
}

func TestExpireGoesInBatches(t *testing.T) {
	each(t, func(e *env) {
		for _, id := range ids(7) {
			e.must(e.Finish(e.Context(), e.run(e.event(id))))
		}
		e.clock.Add(46 * day)
		for _, want := range []int{3, 3, 1, 0} {
			n, err := e.Expire(e.Context(), 3)
			e.must(err)
			if n != want {
				e.Fatalf("%d, want %d", n, want)
			}
		}
	})
}

func TestMigrateAtOnceAndAgain(t *testing.T) {
	for _, d := range []inbox.Dialect{inbox.SQLite, inbox.Postgres} {
		t.Run(d.String(), func(t *testing.T) {
			db := open(t, d)
			var wg sync.WaitGroup
			for range 6 {
				wg.Go(func() {
					if err := inbox.New(db, d, inbox.Options{}).Migrate(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if err := inbox.New(db, d, inbox.Options{}).CheckSchema(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCheckSchemaRefusesWhatDoesNotFit(t *testing.T) {
	db := open(t, inbox.Postgres)
	b := inbox.New(db, inbox.Postgres, inbox.Options{Schema: `odd "name`})
	err := b.CheckSchema(t.Context())
	if !errors.Is(err, inbox.ErrSchema) || !strings.Contains(err.Error(), "hookonce migrate up") {
		t.Errorf("behind: %v", err)
	}
	if err := b.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.CheckSchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `INSERT INTO "odd ""name".inbox_version VALUES (1000, 0)`); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"check": b.CheckSchema(t.Context()), "migrate": b.Migrate(t.Context())} {
		if !errors.Is(err, inbox.ErrSchema) || !strings.Contains(err.Error(), "hookonce migrate up") {
			t.Errorf("ahead, %s: %v", name, err)
		}
	}
}

func TestCheckSchemaMigratesSQLite(t *testing.T) {
	b := inbox.New(open(t, inbox.SQLite), inbox.SQLite, inbox.Options{})
	if err := b.CheckSchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Events(t.Context(), inbox.Filter{}, "", 1); err != nil {
		t.Error(err)
	}
}
