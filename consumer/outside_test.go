package consumer_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/wire"
)

// sink is the world outside: it counts what arrives.
type sink struct {
	mu    sync.Mutex
	tries []consumer.Try
}

func (s *sink) take(t consumer.Try) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries = append(s.tries, t)
	return len(s.tries)
}

func (s *sink) all() []consumer.Try {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tries)
}

// keys are the distinct downstream keys that arrived.
func (s *sink) keys() []string {
	var keys []string
	for _, t := range s.all() {
		if !slices.Contains(keys, t.Key) {
			keys = append(keys, t.Key)
		}
	}
	return keys
}

// do makes an effect of what happens at each try, from 1; nil behind the last.
func (s *sink) do(tries ...func(ctx context.Context) error) func(context.Context, consumer.Try) error {
	return func(ctx context.Context, t consumer.Try) error {
		n := s.take(t)
		if n > len(tries) || tries[n-1] == nil {
			return nil
		}
		return tries[n-1](ctx)
	}
}

func refused(context.Context) error { return errors.New("connection refused") }
func lost(context.Context) error    { return consumer.Unknown(errors.New("the answer was lost")) }
func late(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
func crash(context.Context) error { panic("no") }

func (w *world) letter(key hookonce.Key) inbox.Letter {
	w.t.Helper()
	w.waitState(key, "tickets", inbox.Dead)
	l, err := w.inbox.Letter(w.t.Context(), "tickets", key)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func TestAnOutsideEffectIsStartedBeforeAndDoneAfter(t *testing.T) {
	bothInboxes(t, func(t *testing.T, open func(...consumer.Step) *world) {
		var out sink
		var w *world
		w = open(
			consumer.Step{Name: "ticket", Tx: insertTicket},
			consumer.Step{Name: "mail", Do: func(ctx context.Context, try consumer.Try) error {
				steps := w.record(try.Event.Key, "tickets").Steps
				if len(steps) != 2 || steps[0].State != inbox.StepDone || steps[1].State != inbox.StepStarted {
					t.Errorf("steps %+v while the mail is sent", steps)
				}
				return out.do()(ctx, try)
			}},
			consumer.Step{Name: "count", Tx: insertTicket},
		)
		key := w.send("A-1", "order.paid")
		w.start()
		r := w.waitState(key, "tickets", inbox.Done)
		var states []string
		for _, s := range r.Steps {
			states = append(states, s.Name+" "+string(s.State))
		}
		slices.Sort(states)
		if diff := cmp.Diff([]string{"count done", "mail done", "ticket done"}, states); diff != "" {
			t.Error(diff)
		}
		w.send("A-1", "order.paid")
		w.waitState(w.send("A-2", "order.paid"), "tickets", inbox.Done)
		if diff := cmp.Diff([]string{"shop/A-1/tickets/mail", "shop/A-2/tickets/mail"}, out.keys()); diff != "" || len(out.all()) != 2 {
			t.Errorf("%d mails\n%s", len(out.all()), diff)
		}
	})
}

func TestATryTellsTheTargetWhatComesNext(t *testing.T) {
	var out sink
	w := newWorld(t, consumer.Step{Name: "mail", Do: out.do(refused, refused, refused)})
	key := w.send("A-1", "order.paid")
	w.start()
	l := w.letter(key)
	if l.Reason != inbox.Failed || l.Step != "mail" || l.Open != "" {
		t.Errorf("letter %+v", l)
	}
	tries := out.all()
	for i, try := range tries {
		last := i == len(tries)-1
		if try.Attempt != i+1 || try.MaxAttempts != 3 || try.Group != "tickets" || try.Step != "mail" || (try.RetryIn == 0) != last {
			t.Errorf("try %d: %+v", i, try)
		}
	}
	if len(tries) != 3 || len(out.keys()) != 1 {
		t.Errorf("%d tries, keys %v", len(tries), out.keys())
	}
}

func TestAnEffectWithoutAnEndIsRerunOrParked(t *testing.T) {
	for name, end := range map[string]func(context.Context) error{"lost answer": lost, "timeout": late, "panic": crash} {
		step := consumer.Step{Name: "mail", Timeout: 30 * time.Millisecond}
		t.Run(name+", rerun", func(t *testing.T) {
			bothInboxes(t, func(t *testing.T, open func(...consumer.Step) *world) {
				var out sink
				step.Do = out.do(end)
				w := open(step)
				key := w.send("A-1", "order.paid")
				w.start()
				r := w.waitState(key, "tickets", inbox.Done)
				if len(out.all()) != 2 || len(out.keys()) != 1 || r.Steps[0].State != inbox.StepDone || r.Steps[0].Attempts != 2 {
					t.Errorf("tries %+v, steps %+v", out.all(), r.Steps)
				}
			})
		})
		t.Run(name+", park", func(t *testing.T) {
			bothInboxes(t, func(t *testing.T, open func(...consumer.Step) *world) {
				var out sink
				step.Do, step.OnUnknown = out.do(end), consumer.Park
				w := open(step)
				key := w.send("A-1", "order.paid")
				w.start()
				if l := w.letter(key); l.Reason != inbox.Unknown || l.Step != "mail" || l.Open != "mail" || l.Attempts != 1 {
					t.Errorf("letter %+v", l)
				}
				if len(out.all()) != 1 {
					t.Errorf("%d tries", len(out.all()))
				}
			})
		})
		t.Run(name+", rerun too late", func(t *testing.T) {
			var out sink
			step.Do, step.OnUnknown, step.RerunWithin = out.do(end), consumer.Rerun, time.Nanosecond
			w := newWorld(t, step)
			key := w.send("A-1", "order.paid")
			w.start()
			if l := w.letter(key); l.Reason != inbox.Unknown || len(out.all()) != 1 {
				t.Errorf("letter %+v, %d tries", l, len(out.all()))
			}
		})
	}
}

func TestWhatMayHaveHappenedStaysUnknownBehindOtherFailures(t *testing.T) {
	for name, last := range map[string]func(context.Context) error{
		"attempts used up": refused,
		"permanent":        func(context.Context) error { return consumer.Permanent(errors.New("no such address")) },
	} {
		t.Run(name, func(t *testing.T) {
			var out sink
			w := newWorld(t, consumer.Step{Name: "mail", Do: out.do(lost, refused, last)})
			key := w.send("A-1", "order.paid")
			w.start()
			if l := w.letter(key); l.Reason != inbox.Unknown || l.Open != "mail" || len(out.all()) != 3 {
				t.Errorf("letter %+v, %d tries", l, len(out.all()))
			}
		})
	}
}

// died leaves an event as a process does that dies behind the given works.
func (w *world) died(id string, works ...inbox.Work) hookonce.Key {
	w.t.Helper()
	key := hookonce.Key{Source: "shop", ID: id}
	e := hookonce.Event{Key: key, Type: "order.paid", Body: []byte(`{}`), ReceivedAt: time.Now()}
	vs, err := w.inbox.Begin(w.t.Context(), "tickets", []wire.Delivery{{Event: e}}, 5)
	if err != nil || vs[0].Decision != inbox.Run {
		w.t.Fatalf("%+v, %v", vs, err)
	}
	for _, work := range works {
		work.Lease = vs[0].Lease
		if rs, err := w.inbox.Apply(w.t.Context(), []inbox.Work{work}); err != nil || rs[0].Err != nil {
			w.t.Fatal(rs, err)
		}
	}
	w.endLeases()
	w.send(id, "order.paid") // as the broker does
	return key
}

// endLeases lets every lease be of a holder that died long ago.
func (w *world) endLeases() {
	w.t.Helper()
	table := "hookonce_inbox"
	if w.postgres {
		table = "hookonce.inbox"
	}
	w.exec("update " + table + " set lease_until = 1 where state = 'running'")
}

func TestACrashAtEachPointOfAnOutsideEffect(t *testing.T) {
	started := inbox.Work{Step: inbox.Step{Name: "mail", State: inbox.StepStarted}}
	done := inbox.Work{Step: inbox.Step{Name: "mail", State: inbox.StepDone}, Last: true}
	for name, c := range map[string]struct {
		before    []inbox.Work
		onUnknown consumer.OnUnknown
		tries     int
		state     inbox.State
		reason    inbox.Reason
	}{
		"before it is started":               {nil, consumer.Park, 1, inbox.Done, ""},
		"between started and done, rerun":    {[]inbox.Work{started}, consumer.Rerun, 1, inbox.Done, ""},
		"between started and done, park":     {[]inbox.Work{started}, consumer.Park, 0, inbox.Dead, inbox.Unknown},
		"behind its record, not acked, park": {[]inbox.Work{started, done}, consumer.Park, 0, inbox.Done, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bothInboxes(t, func(t *testing.T, open func(...consumer.Step) *world) {
				var out sink
				w := open(consumer.Step{Name: "mail", Do: out.do(), OnUnknown: c.onUnknown})
				key := w.died("A-1", c.before...)
				w.start()
				r := w.waitState(key, "tickets", c.state)
				w.waitState(w.send("A-2", "order.paid"), "tickets", inbox.Done)
				if err := w.stop(); err != nil {
					t.Fatal(err)
				}
				if n := len(out.all()) - 1; n != c.tries {
					t.Errorf("%d tries, want %d (%+v)", n, c.tries, r)
				}
				if c.reason != "" {
					if l := w.letter(key); l.Reason != c.reason || l.Step != "mail" {
						t.Errorf("letter %+v", l)
					}
				}
			})
		})
	}
}

// TestWhatWasBrokenOffBeforeItBeganIsNotUnknown: a shutdown while a try waits
// for its turn leaves no decision to a person.
func TestWhatWasBrokenOffBeforeItBeganIsNotUnknown(t *testing.T) {
	bothInboxes(t, func(t *testing.T, open func(...consumer.Step) *world) {
		begun := make(chan struct{}, 1)
		var out sink
		w := open(consumer.Step{Name: "charge", OnUnknown: consumer.Park, Do: out.do(func(ctx context.Context) error {
			begun <- struct{}{}
			<-ctx.Done()
			return consumer.NotBegun(ctx.Err())
		})})
		w.cfg.DrainTimeout = 50 * time.Millisecond
		key := w.send("A-1", "order.paid")
		w.start()
		<-begun
		if err := w.stop(); err == nil {
			t.Error("Run did not say that something was broken off")
		}
		w.cfg.DrainTimeout = time.Second
		w.start()
		w.waitState(key, "tickets", inbox.Done)
		if n := len(out.all()); n != 2 {
			t.Errorf("%d tries, want 2", n)
		}
	})
}

// A rename keeps what was recorded, and the key that the target knows.
func TestARenamedStepKeepsItsRecordAndItsKey(t *testing.T) {
	var out sink
	w := newWorld(t,
		consumer.Step{Name: "issue", Was: []string{"ticket"}, Tx: insertTicket},
		consumer.Step{Name: "send", Was: []string{"mail", "post"}, Do: out.do()},
	)
	key := w.died("A-1",
		inbox.Work{Step: inbox.Step{Name: "ticket"}},
		inbox.Work{Step: inbox.Step{Name: "mail", State: inbox.StepStarted}})
	w.start()
	w.waitState(key, "tickets", inbox.Done)
	if n := w.tickets("A-1"); n != 0 {
		t.Errorf("%d tickets of a step that was done", n)
	}
	if diff := cmp.Diff([]string{"shop/A-1/tickets/mail"}, out.keys()); diff != "" {
		t.Error(diff)
	}
}

func TestAPauseLongerThanTheLeaseCannotCommit(t *testing.T) {
	bothInboxes(t, func(t *testing.T, open func(...consumer.Step) *world) {
		begun, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		var out sink
		w := open(
			consumer.Step{Name: "mail", Do: func(ctx context.Context, try consumer.Try) error {
				if try.Attempt > 1 {
					return out.do()(ctx, try)
				}
				once.Do(func() { close(begun) })
				<-goOn // frozen: it hears nothing, and succeeds in the end
				return nil
			}},
			consumer.Step{Name: "ticket", Tx: insertTicket},
		)
		w.cfg.Lease = time.Hour // this process renews nothing
		key := w.send("A-1", "order.paid")
		w.start()
		<-begun
		w.endLeases()
		vs, err := w.inbox.Begin(t.Context(), "tickets", []wire.Delivery{{Event: hookonce.Event{Key: key, ReceivedAt: time.Now()}}}, 5)
		if err != nil || vs[0].Decision != inbox.Run {
			t.Fatalf("%+v, %v", vs, err)
		}
		close(goOn)
		// The other holder dies in turn, once this one has met its loss.
		w.waitState(w.send("A-2", "order.paid"), "tickets", inbox.Done)
		if r := w.record(key, "tickets"); r.State != inbox.Running || w.tickets("A-1") != 0 {
			t.Errorf("%+v, %d tickets under a lost lease", r, w.tickets("A-1"))
		}
		w.endLeases()
		w.waitState(key, "tickets", inbox.Done)
		if n := w.tickets("A-1"); n != 1 || len(out.keys()) != 1 {
			t.Errorf("%d tickets, keys %v", n, out.keys())
		}
	})
}

func TestTwoEventsOfOneOrderHaveOneTicketAndOneMail(t *testing.T) {
	bothInboxes(t, func(t *testing.T, open func(...consumer.Step) *world) {
		var out sink
		order := func(hookonce.Event) (string, error) { return "order 7", nil }
		var at atomic.Int32
		w := open(
			consumer.Step{Name: "ticket", OncePer: order, Tx: insertTicket},
			consumer.Step{Name: "mail", OncePer: order, Do: func(ctx context.Context, try consumer.Try) error {
				if at.Add(1) > 1 {
					t.Error("two at the same time")
				}
				defer at.Add(-1)
				return out.do(refused)(ctx, try)
			}},
		)
		a, b := w.send("evt_1", "order.paid"), w.send("evt_2", "order.paid")
		w.start()
		steps := slices.Concat(w.waitState(a, "tickets", inbox.Done).Steps, w.waitState(b, "tickets", inbox.Done).Steps)
		count := map[string]int{}
		for _, s := range steps {
			count[s.Name+" "+string(s.State)]++
		}
		want := map[string]int{"ticket done": 1, "ticket skipped": 1, "mail done": 1, "mail skipped": 1}
		if diff := cmp.Diff(want, count); diff != "" {
			t.Error(diff)
		}
		if n := w.tickets("evt_1") + w.tickets("evt_2"); n != 1 || len(out.all()) != 2 {
			t.Errorf("%d tickets, tries %+v", n, out.all())
		}
		if diff := cmp.Diff([]string{"order 7/tickets/mail"}, out.keys()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAValueWithAnUnknownEndLeavesTheLaterEventToAPerson(t *testing.T) {
	var out sink
	w := newWorld(t, consumer.Step{
		Name: "mail", OnUnknown: consumer.Park, Do: out.do(lost),
		OncePer: func(hookonce.Event) (string, error) { return "order 7", nil },
	})
	first := w.send("evt_1", "order.paid")
	w.start()
	w.letter(first)
	l := w.letter(w.send("evt_2", "order.paid"))
	if l.Reason != inbox.Unknown || l.Step != "mail" || l.Open != "" || len(out.all()) != 1 {
		t.Errorf("letter %+v, %d tries", l, len(out.all()))
	}
}

func TestAConditionThatIsFalseSkipsTheStep(t *testing.T) {
	var out sink
	w := newWorld(t,
		consumer.Step{Name: "mail", Do: out.do(), When: func(e hookonce.Event) (bool, error) { return e.Key.ID == "yes", nil }},
		consumer.Step{Name: "ticket", Tx: insertTicket, When: func(e hookonce.Event) (bool, error) { return e.Key.ID == "yes", nil }},
	)
	w.start()
	for id, want := range map[string]inbox.StepState{"yes": inbox.StepDone, "no": inbox.StepSkipped} {
		r := w.waitState(w.send(id, "order.paid"), "tickets", inbox.Done)
		for _, s := range r.Steps {
			if s.State != want {
				t.Errorf("%s: step %+v, want %s", id, s, want)
			}
		}
	}
	if len(out.all()) != 1 || w.tickets("no") != 0 {
		t.Errorf("%d mails, %d tickets", len(out.all()), w.tickets("no"))
	}
}

// Fifty deliveries share transactions with one that fails and one that hangs.
func TestOneBadEventAmongManyFailsAlone(t *testing.T) {
	bothInboxes(t, func(t *testing.T, open func(...consumer.Step) *world) {
		tx := func(ctx context.Context, tx *sql.Tx, e hookonce.Event) error {
			if err := insertTicket(ctx, tx, e); err != nil {
				return err
			}
			switch e.Key.ID {
			case "bad":
				return errors.New("no")
			case "slow":
				return late(ctx)
			case "wild":
				panic("no")
			}
			return nil
		}
		w := open(consumer.Step{Name: "ticket", Tx: tx, Timeout: 200 * time.Millisecond})
		var good []hookonce.Key
		for i := range 50 {
			good = append(good, w.send(fmt.Sprint("good-", i), "order.paid"))
			if i == 10 {
				w.send("bad", "order.paid")
				w.send("slow", "order.paid")
				w.send("wild", "order.paid")
			}
		}
		w.start()
		for _, key := range good {
			w.waitState(key, "tickets", inbox.Done)
			if n := w.tickets(key.ID); n != 1 {
				t.Errorf("%d tickets of %s", n, key)
			}
		}
		for _, id := range []string{"bad", "slow", "wild"} {
			if l := w.letter(hookonce.Key{Source: "shop", ID: id}); l.Reason != inbox.Failed || l.Attempts != 3 || w.tickets(id) != 0 {
				t.Errorf("%+v, %d tickets", l, w.tickets(id))
			}
		}
	})
}

func TestAnEventWhoseProcessDiedTwiceRunsAlone(t *testing.T) {
	var running, most atomic.Int32
	var suspects sync.Map
	w := newWorld(t, consumer.Step{Name: "mail", Do: func(_ context.Context, try consumer.Try) error {
		n := running.Add(1)
		defer running.Add(-1)
		if _, suspect := suspects.Load(try.Event.Key); suspect && n > 1 {
			t.Errorf("%s runs beside %d others", try.Event.Key, n-1)
		}
		most.Store(max(most.Load(), n))
		return nil
	}})
	var keys []hookonce.Key
	for i := range 4 {
		id := fmt.Sprint("suspect-", i)
		w.died(id)
		key := w.died(id)
		suspects.Store(key, true)
		keys = append(keys, key)
	}
	for i := range 20 {
		keys = append(keys, w.send(fmt.Sprint("good-", i), "order.paid"))
	}
	w.start()
	for _, key := range keys {
		w.waitState(key, "tickets", inbox.Done)
	}
}

func TestDownstreamKeysFitAndDiffer(t *testing.T) {
	long := string(slices.Repeat([]byte("x"), 400))
	seen := map[string]bool{}
	for _, key := range []string{
		consumer.DownstreamKey("shop/A", "g", "s", 0), consumer.DownstreamKey("shop/A", "g", "s", 2),
		consumer.DownstreamKey("shop/"+long, "g", "s", 0), consumer.DownstreamKey("shop/"+long, "g", "t", 0),
		consumer.DownstreamKey("shop/"+long, "g", "s", 1),
	} {
		if len(key) > hookonce.MaxMessageID || seen[key] {
			t.Errorf("%d bytes, seen %t: %s", len(key), seen[key], key)
		}
		seen[key] = true
	}
	if !seen["shop/A/g/s"] || !seen["shop/A/g/s;run2"] {
		t.Errorf("keys %v", seen)
	}
}
