package consumer_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/inbox"
)

// handled makes the world's group one of handlers.
func (w *world) handled(routes ...consumer.Route) *world {
	g := &w.cfg.Groups[0]
	g.Match, g.Steps, g.Handlers = nil, nil, routes
	return w
}

func ticket(ctx context.Context, id string) func(context.Context, *sql.Tx) error {
	return func(_ context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "insert into tickets values ($1)", id)
		return err
	}
}

func TestATypedHandlerWritesOnce(t *testing.T) {
	bothInboxes(t, func(t *testing.T, open func(...consumer.Step) *world) {
		type order struct{ ID string }
		w := open().handled(consumer.Handle("shop.order.#", func(ctx context.Context, e hookonce.Event, _ order) error {
			return consumer.FromContext(ctx).Tx(ctx, ticket(ctx, e.Key.ID))
		}))
		w.start()
		var keys []hookonce.Key
		for i := range 40 {
			keys = append(keys, w.send(fmt.Sprint("A-", i%30), "order.paid"))
		}
		for _, key := range keys {
			w.waitState(key, "tickets", inbox.Done)
			if n := w.tickets(key.ID); n != 1 {
				t.Errorf("%d tickets of %s", n, key)
			}
		}
	})
}

func TestABodyThatIsNoTIsADeadLetterAtOnce(t *testing.T) {
	w := newWorld(t).handled(consumer.Handle("shop.order.#", func(context.Context, hookonce.Event, []int) error { return nil }))
	key := w.send("A-1", "order.paid")
	w.start()
	if l := w.letter(key); l.Reason != inbox.Permanent || l.Attempts != 1 {
		t.Errorf("letter %+v", l)
	}
}

func TestAHandlersStepsResumeBehindTheLastOneDone(t *testing.T) {
	bothInboxes(t, func(t *testing.T, open func(...consumer.Step) *world) {
		var out sink
		mail := out.do(refused, lost)
		w := open().handled(consumer.HandleFunc("shop.order.#", func(ctx context.Context, d *consumer.Delivery) error {
			if err := d.StepTx(ctx, "ticket", ticket(ctx, d.Event.Key.ID)); err != nil {
				return err
			}
			if err := d.Step(ctx, "mail", mail); err != nil {
				return errors.New("mail: " + err.Error()) // what it wraps is lost; the record is not
			}
			return d.StepTx(ctx, "count", ticket(ctx, d.Event.Key.ID))
		}))
		key := w.send("A-1", "order.paid")
		w.start()
		r := w.waitState(key, "tickets", inbox.Done)
		var got []string
		for _, s := range r.Steps {
			got = append(got, fmt.Sprintf("%s %s %d", s.Name, s.State, s.Attempts))
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{"count done 1", "mail done 3", "ticket done 1"}, got); diff != "" {
			t.Error(diff)
		}
		if n := w.tickets("A-1"); n != 2 || len(out.all()) != 3 || len(out.keys()) != 1 {
			t.Errorf("%d rows, mails %+v", n, out.all())
		}
	})
}

func TestAStepInsideAnOpenTxIsRefused(t *testing.T) {
	var inStep, inTx, after error
	w := newWorld(t).handled(consumer.HandleFunc("shop.order.#", func(ctx context.Context, d *consumer.Delivery) error {
		err := d.Tx(ctx, func(context.Context, *sql.Tx) error {
			inStep = d.Step(ctx, "mail", func(context.Context, consumer.Try) error { return nil })
			inTx = d.StepTx(ctx, "ticket", ticket(ctx, "x"))
			return nil
		})
		after = d.Step(ctx, "mail", func(context.Context, consumer.Try) error { return nil })
		return errors.Join(err, errors.New("behind the Tx"))
	}))
	key := w.send("A-1", "order.paid")
	w.start()
	w.waitState(key, "tickets", inbox.Done)
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(inStep, consumer.ErrStepInTx) || !errors.Is(inTx, consumer.ErrStepInTx) || !errors.Is(after, consumer.ErrDone) {
		t.Errorf("in a Tx: %v, %v; behind it: %v", inStep, inTx, after)
	}
}

func TestMiddlewareWrapsInOrderAndTheFirstRouteThatMatchesTakes(t *testing.T) {
	var path atomic.Value
	path.Store("")
	add := func(s string) { path.Store(path.Load().(string) + s) }
	around := func(name string) consumer.Middleware {
		return func(next consumer.Handler) consumer.Handler {
			return func(ctx context.Context, d *consumer.Delivery) error {
				add(name + "(")
				defer add(")")
				return next(ctx, d)
			}
		}
	}
	route := func(pattern string) consumer.Route {
		return consumer.HandleFunc(pattern, func(context.Context, *consumer.Delivery) error { add(pattern); return nil })
	}
	w := newWorld(t).handled(route("shop.order.refunded"), route("shop.order.*"), route("shop.#"))
	w.cfg.Groups[0].Use = []consumer.Middleware{around("a"), around("b")}
	key := w.send("A-1", "order.paid")
	w.start()
	w.waitState(key, "tickets", inbox.Done)
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if got := path.Load(); got != "a(b(shop.order.*))" {
		t.Errorf("path %v", got)
	}
}

func TestAHandlerThatPanicsOrHangsFailsAlone(t *testing.T) {
	for name, fn := range map[string]consumer.Handler{
		"panic": func(context.Context, *consumer.Delivery) error { panic("no") },
		"hangs": func(ctx context.Context, _ *consumer.Delivery) error { <-ctx.Done(); return ctx.Err() },
		"panics in its Tx": func(ctx context.Context, d *consumer.Delivery) error {
			return d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
				if err := ticket(ctx, d.Event.Key.ID)(ctx, tx); err != nil {
					return err
				}
				panic("no")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).handled(consumer.HandleFunc("shop.order.#", func(ctx context.Context, d *consumer.Delivery) error {
				if d.Event.Key.ID == "bad" {
					return fn(ctx, d)
				}
				return d.OwnTx(ctx, ticket(ctx, d.Event.Key.ID))
			}).Timeout(50 * time.Millisecond))
			bad, good := w.send("bad", "order.paid"), w.send("good", "order.paid")
			w.start()
			w.waitState(good, "tickets", inbox.Done)
			if l := w.letter(bad); l.Reason != inbox.Failed || l.Attempts != 3 || w.tickets("bad") != 0 {
				t.Errorf("letter %+v", l)
			}
		})
	}
}
