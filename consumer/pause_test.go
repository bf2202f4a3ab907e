package consumer_test

import (
	"testing"

	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/inbox"
)

func TestAPausedGroupTakesNothingUntilItIsResumed(t *testing.T) {
	w := newWorld(t, consumer.Step{Name: "ticket", Tx: insertTicket})
	if _, err := w.inbox.Pause(t.Context(), "tickets", "test"); err != nil {
		t.Fatal(err)
	}
	key := w.send("A-1", "order.paid")
	w.start() // as after a restart
	stray := w.send("S-1", "stock.changed")
	w.waitState(stray, "-", inbox.Dead) // it works, and has left the group alone
	if r := w.record(key, "tickets"); r.State != "" {
		t.Errorf("%+v while its group is paused", r)
	}
	if _, err := w.inbox.Resume(t.Context(), "tickets"); err != nil {
		t.Fatal(err)
	}
	w.waitState(key, "tickets", inbox.Done)

	if _, err := w.inbox.Pause(t.Context(), "tickets", "test"); err != nil {
		t.Fatal(err)
	}
	w.eventually("the pause is known", func() bool { return !w.consumer.Taking("tickets") })
	key = w.send("A-2", "order.paid")
	w.waitState(w.send("S-2", "stock.changed"), "-", inbox.Dead)
	if r := w.record(key, "tickets"); r.State != "" {
		t.Errorf("%+v while its group is paused", r)
	}
	if !w.consumer.Up()["tickets"] {
		t.Error("a group that does as it is told counts as down")
	}
}
