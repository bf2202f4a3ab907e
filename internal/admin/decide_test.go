package admin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/admin"
	"github.com/hookonce/hookonce/internal/inbox"
)

func TestReplayCarriesAPersonsDecisionOut(t *testing.T) {
	for name, c := range map[string]struct {
		change admin.Change
		line   string
		run    int
		mail   inbox.StepState // in the run that is sent; empty: no record
	}{
		"done":   {admin.Change{Unknown: "done", Comment: "it is in the outbox"}, "shop/a g replayed", 0, inbox.StepDone},
		"rerun":  {admin.Change{Unknown: "rerun", Comment: "it is not"}, "shop/a g replayed", 0, inbox.StepFailed},
		"forced": {admin.Change{Force: true, AllSteps: true, Comment: "all wrong"}, "shop/a g replayed", 1, ""},
		"plain":  {admin.Change{}, "shop/a g skipped: unknown step mail", 0, inbox.StepUnknown},
		"dry":    {admin.Change{Unknown: "done", Comment: "x", DryRun: true}, "shop/a g would be replayed", 0, inbox.StepUnknown},
		"forced, another step": {
			admin.Change{Force: true, Steps: []string{"ticket"}, Comment: "x"},
			"shop/a g failed: step mail has an unknown end: decide about it first, or name it too", 0, inbox.StepUnknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			ev := event("a")
			l := e.begin(ev)
			_, err := e.inbox.Apply(t.Context(), []inbox.Work{{Lease: l, Step: inbox.Step{Name: "ticket"}}})
			e.must(err)
			e.must(e.inbox.Bury(t.Context(), l, inbox.Letter{Event: ev, Reason: inbox.Unknown, Step: "mail", StepState: inbox.StepUnknown}))
			c.change.Selection.Key = "shop/a"
			lines, _ := e.replay(c.change)
			if !slices.Equal(lines, []string{c.line}) {
				t.Fatalf("%v", lines)
			}
			if sent := strings.HasSuffix(c.line, " replayed") && !c.change.DryRun; sent != (len(e.queue.sent) == 1) {
				t.Fatalf("sent %+v", e.queue.sent)
			} else if sent {
				if d := e.queue.sent[0].d; d.Run != c.run || d.Generation != 1 {
					t.Errorf("sent %+v", d)
				}
			}
			rs, err := e.inbox.Event(t.Context(), ev.Key)
			e.must(err)
			mail := inbox.StepState("")
			for _, s := range rs[0].Steps {
				if s.Name == "mail" {
					mail = s.State
				}
			}
			if c.run == 0 && mail != c.mail {
				t.Errorf("mail is %q, want %q", mail, c.mail)
			}
		})
	}
}

func TestADecisionThatIsHalfMadeIsRefused(t *testing.T) {
	e := newEnv(t)
	for name, c := range map[string]admin.Change{
		"no reason":            {Unknown: "done"},
		"no such word":         {Unknown: "perhaps", Comment: "x"},
		"both":                 {Unknown: "done", Force: true, AllSteps: true, Comment: "x"},
		"force without steps":  {Force: true, Comment: "x"},
		"force of all and one": {Force: true, AllSteps: true, Steps: []string{"a"}, Comment: "x"},
		"steps without force":  {Steps: []string{"a"}, Comment: "x"},
	} {
		c.All = true
		if _, err := e.client.Replay(t.Context(), c, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := e.client.Discard(t.Context(), admin.Change{All: true, Unknown: "done", Comment: "x"}, nil); err == nil {
		t.Error("discard took a decision of a replay")
	}
}

func TestGroupsArePausedAndResumed(t *testing.T) {
	e := newEnv(t)
	ctx := t.Context()
	g, err := e.client.Pause(ctx, "g", "the CRM moves")
	e.must(err)
	all, err := e.client.Groups(ctx)
	e.must(err)
	if !g.Paused || g.Reason != "the CRM moves" || !slices.Contains(all, g) {
		t.Errorf("%+v, %+v", g, all)
	}
	if _, err := e.client.Pause(ctx, "nobody", ""); err == nil {
		t.Error("a group that is not there was paused")
	}
	if g, err = e.client.Resume(ctx, "g"); err != nil || g.Paused {
		t.Errorf("%+v, %v", g, err)
	}
}
