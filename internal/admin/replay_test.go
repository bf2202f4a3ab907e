package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/admin"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/wire"
)

func TestReplaySendsTheOldestFirstAndMarksThem(t *testing.T) {
	e := newEnv(t)
	var ids []string
	for i := range 210 { // more than a batch
		ids = append(ids, fmt.Sprintf("k%03d", i))
	}
	e.bury(ids...)
	lines, totals := e.replay(admin.Change{All: true})
	if totals != (admin.Totals{Total: 210, Replayed: 210}) || lines[0] != "shop/k000 g replayed" || lines[209] != "shop/k209 g replayed" {
		t.Fatalf("%+v", totals)
	}
	for i, s := range e.queue.sent {
		// A batch of 200 is sent side by side, the oldest batch first.
		if s.group != "g" || slices.Index(ids, s.d.Key.ID)/200 != i/200 || s.d.Generation != 1 || string(s.d.Body) != `{"id":1}` || s.d.Rerouted {
			t.Fatalf("sent %+v", s)
		}
	}
	if _, totals := e.replay(admin.Change{All: true}); totals.Total != 0 {
		t.Errorf("again: %+v", totals)
	}
}

func TestReplaySelectsLimitsAndPlans(t *testing.T) {
	e := newEnv(t)
	e.bury("a", "b", "c")
	lines, totals := e.replay(admin.Change{Selection: admin.Selection{Error: "boom"}, DryRun: true})
	if len(lines) != 3 || totals != (admin.Totals{Total: 3, Planned: 3}) || len(e.queue.sent) != 0 {
		t.Errorf("plan: %v %+v", lines, totals)
	}
	lines, totals = e.replay(admin.Change{Selection: admin.Selection{Type: "order.*"}, Limit: 1, Rate: 1000})
	if !slices.Equal(lines, []string{"shop/a g replayed"}) || totals.Total != 1 {
		t.Errorf("limit: %v %+v", lines, totals)
	}
	if lines, _ = e.replay(admin.Change{Selection: admin.Selection{Group: "none"}}); len(lines) != 0 {
		t.Errorf("other group: %v", lines)
	}
}

func TestReplayOfANamedKey(t *testing.T) {
	e := newEnv(t)
	e.bury("dead")
	e.must(e.inbox.Finish(t.Context(), e.begin(event("done"))))
	e.begin(event("running"))
	key := func(k string) admin.Change { return admin.Change{Selection: admin.Selection{Key: "shop/" + k}} }
	for _, c := range []struct {
		key, line string
		found     bool
	}{
		{"dead", "shop/dead g replayed", true},
		{"dead", "shop/dead g skipped: not dead", true},
		{"done", "shop/done g skipped: already done", true},
		{"running", "shop/running g skipped: not dead", true},
		{"none", "", false},
	} {
		lines, totals := e.replay(key(c.key))
		if strings.Join(lines, "") != c.line || totals.Found == nil || *totals.Found != c.found {
			t.Errorf("%s: %v %+v", c.key, lines, totals)
		}
	}
}

func TestReplayOfUnroutedLettersGoesToEverybody(t *testing.T) {
	e := newEnv(t)
	ev := event("a")
	ev.Parked, ev.Unmatched = "no key", "keep"
	_, err := e.inbox.Park(t.Context(), inbox.Letter{Event: ev, Group: queue.Unrouted, Reason: inbox.Unrouted})
	e.must(err)
	lines, totals := e.replay(admin.Change{Selection: admin.Selection{Group: queue.Unrouted}})
	if !slices.Equal(lines, []string{"shop/a - replayed"}) || totals.Replayed != 1 {
		t.Errorf("%v %+v", lines, totals)
	}
	if s := e.queue.sent[0]; s.group != "" || s.d.Generation != 0 || s.d.Rerouted || s.d.Parked != "" || s.d.Unmatched != "keep" {
		t.Errorf("sent %+v", s)
	}
	left, err := e.inbox.CountDead(t.Context())
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestReplayWhoseDeliveryCameFirstIsReplayed(t *testing.T) {
	e := newEnv(t)
	e.bury("a", "b")
	e.queue.then = func(group string, d wire.Delivery) {
		if d.Key.ID != "a" { // b is discarded between
			_, err := e.inbox.Discard(context.Background(), "", inbox.Target{Group: group, Key: d.Key})
			e.must(err)
			return
		}
		vs, err := e.inbox.Begin(context.Background(), group, []wire.Delivery{d}, 5)
		e.must(err)
		e.must(e.inbox.Finish(context.Background(), vs[0].Lease))
	}
	lines, _ := e.replay(admin.Change{All: true})
	if !slices.Equal(lines, []string{"shop/a g replayed", "shop/b g skipped: not dead"}) {
		t.Errorf("%v", lines)
	}
}

func TestReplayMeetsALetterThatDiesAgainOnce(t *testing.T) {
	e := newEnv(t)
	e.bury("a", "b")
	e.queue.then = func(group string, d wire.Delivery) {
		vs, err := e.inbox.Begin(context.Background(), group, []wire.Delivery{d}, 5)
		e.must(err)
		e.now = e.now.Add(1)
		e.must(e.inbox.Bury(context.Background(), vs[0].Lease, inbox.Letter{Event: d.Event, Reason: inbox.Failed}))
	}
	e.now = e.now.Add(1000)
	if lines, totals := e.replay(admin.Change{All: true}); totals.Replayed != 2 {
		t.Errorf("%v %+v", lines, totals)
	}
}

func TestReplayLeavesUnknownStepsToAPerson(t *testing.T) {
	e := newEnv(t)
	ev := event("a")
	e.must(e.inbox.Bury(t.Context(), e.begin(ev), inbox.Letter{Event: ev, Reason: inbox.Unknown, Step: "mail", StepState: inbox.StepUnknown}))
	if lines, _ := e.replay(admin.Change{All: true}); !slices.Equal(lines, []string{"shop/a g skipped: unknown step mail"}) {
		t.Errorf("%v", lines)
	}
}

func TestReplayKeepsWhatCouldNotBeSent(t *testing.T) {
	e := newEnv(t)
	var ids []string
	for i := range 30 {
		ids = append(ids, fmt.Sprint(i))
	}
	e.bury(ids...)
	e.queue.err = errors.New("broker away")
	lines, totals := e.replay(admin.Change{All: true})
	if totals.Failed != 20 || totals.Stopped == "" || lines[0] != "shop/0 g failed: broker away" {
		t.Errorf("%v %+v", lines, totals)
	}
	if left, err := e.inbox.CountDead(t.Context()); err != nil || left["g"] != 30 {
		t.Errorf("left %v, %v", left, err)
	}
	e.opts.Queue = nil
	e.serve()
	if _, err := e.client.Replay(t.Context(), admin.Change{All: true}, nil); err == nil || !strings.Contains(err.Error(), "no broker") {
		t.Errorf("err %v", err)
	}
}

func TestDiscard(t *testing.T) {
	e := newEnv(t)
	e.bury("a", "b")
	var lines []string
	each := func(l admin.Line) { lines = append(lines, l.Key+" "+l.Result) }
	totals, err := e.client.Discard(t.Context(), admin.Change{Selection: admin.Selection{Key: "shop/a"}, Comment: "test order"}, each)
	e.must(err)
	if !slices.Equal(lines, []string{"shop/a discarded"}) || totals.Discarded != 1 || totals.Total != 1 {
		t.Errorf("%v %+v", lines, totals)
	}
	details, err := e.client.Event(t.Context(), hookonce.Key{Source: "shop", ID: "a"})
	e.must(err)
	if n := details[0].Timeline; details[0].State != "discarded" || n[len(n)-1].Detail != "test order" {
		t.Errorf("%+v", details[0])
	}
	dead, err := e.client.Dead(t.Context(), admin.Selection{}, admin.Page{})
	if err != nil || len(dead.Items) != 1 || dead.Items[0].Key != "shop/b" {
		t.Errorf("%+v, %v", dead, err)
	}
	groups, err := e.client.DeadGroups(t.Context(), admin.Selection{})
	if err != nil || len(groups) != 1 || groups[0].Count != 1 {
		t.Errorf("%+v, %v", groups, err)
	}
}

func TestAChangeOfEverythingMustBeMeant(t *testing.T) {
	e := newEnv(t)
	e.bury("a")
	for _, c := range []admin.Change{
		{},
		{Limit: 1},
		{Selection: admin.Selection{Source: "shop"}, All: true},
		{All: true, Limit: -1},
		{Selection: admin.Selection{State: "dead"}},
		{Selection: admin.Selection{Since: "soon"}},
	} {
		_, err := e.client.Replay(t.Context(), c, nil)
		var p *admin.Problem
		if !errors.As(err, &p) || p.Status != 400 || p.Detail == "" {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if len(e.queue.sent) != 0 {
		t.Error("something was sent")
	}
}

func TestAReplayEndsWithItsCaller(t *testing.T) {
	e := newEnv(t)
	e.bury("a", "b", "c")
	ctx, cancel := context.WithCancel(t.Context())
	totals, err := e.client.Replay(ctx, admin.Change{All: true, Rate: 0.001}, func(admin.Line) { cancel() })
	if err == nil && totals.Stopped == "" {
		t.Errorf("not stopped: %+v", totals)
	}
	if n := len(e.queue.sent); n != 1 {
		t.Errorf("%d sent, want the one before the end", n)
	}
}
