package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/wire"
)

const (
	// batch is how many letters are read at a time.
	batch = 200
	// sideBySide is how many events are being sent at a time.
	sideBySide = 64
	// failuresInARow end a change: the broker or the database is away.
	failuresInARow = 20
)

// job is one change under way.
type job struct {
	s      *Service
	change Change
	filter inbox.Filter
	out    *ndjson
	totals Totals
	start  time.Time
	inARow int // failures
	// act deals with letters, side by side, and says how with each.
	act func(ctx context.Context, ls []inbox.Letter) []string
}

func (s *Service) replay(w http.ResponseWriter, r *http.Request) {
	if s.o.Queue == nil {
		problem(w, http.StatusServiceUnavailable, "nothing can be replayed here: there is no broker")
		return
	}
	s.run(w, r, true, "dead letters replayed", func(c Change) func(context.Context, []inbox.Letter) []string {
		return func(ctx context.Context, ls []inbox.Letter) []string { return s.replayAll(ctx, ls, c) }
	})
}

func (s *Service) discard(w http.ResponseWriter, r *http.Request) {
	s.run(w, r, false, "dead letters discarded", func(c Change) func(context.Context, []inbox.Letter) []string {
		return func(ctx context.Context, ls []inbox.Letter) []string { return s.discardAll(ctx, ls, c) }
	})
}

func (s *Service) run(w http.ResponseWriter, r *http.Request, replay bool, what string, act func(c Change) func(context.Context, []inbox.Letter) []string) {
	c, filter, ok := s.change(w, r, replay)
	if !ok {
		return
	}
	// What dies from now on, perhaps of this very replay, is not meant.
	start := s.o.Now()
	if after := start.Add(time.Microsecond); filter.Until.IsZero() || filter.Until.After(after) {
		filter.Until = after
	}
	letters, next, err := s.o.Inbox.Letters(r.Context(), filter, "", batch)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	j := &job{s: s, change: c, filter: filter, out: startNDJSON(w), start: time.Now(), act: act(c)}
	err = j.all(r.Context(), letters, next)
	if !c.DryRun {
		s.o.Logger.Info(what, "total", j.totals.Total, "replayed", j.totals.Replayed, "discarded", j.totals.Discarded,
			"skipped", j.totals.Skipped, "failed", j.totals.Failed, "err", err)
	}
	if err != nil {
		j.totals.Stopped = err.Error()
	}
	_ = j.out.write(j.totals) // an error is the caller gone
}

// all deals with the letters page by page, and at last with a named key that
// is no dead letter.
func (j *job) all(ctx context.Context, letters []inbox.Letter, next inbox.Cursor) error {
	for {
		for part := range slices.Chunk(letters, j.chunk()) {
			if left := j.change.Limit - j.totals.Total; j.change.Limit > 0 && left < len(part) {
				part = part[:left]
			}
			if len(part) == 0 {
				return nil
			}
			if err := j.pace(ctx); err != nil {
				return err
			}
			for i, result := range j.act(ctx, part) {
				if err := j.line(Line{Key: FullKey(part[i].Event.Key), Group: part[i].Group, Result: result}); err != nil {
					return err
				}
			}
		}
		if next == "" {
			return j.missing(ctx)
		}
		var err error
		if letters, next, err = j.s.o.Inbox.Letters(ctx, j.filter, next, batch); err != nil {
			return err
		}
	}
}

// chunk is how many letters are dealt with side by side: under a rate no more
// than a tenth of a second's.
func (j *job) chunk() int {
	if j.change.Rate <= 0 {
		return batch
	}
	return max(1, min(batch, int(j.change.Rate/10)))
}

// line counts and writes a line, and ends the change when nothing works.
func (j *job) line(l Line) error {
	before := j.totals.Failed
	j.totals.count(l.Result)
	if j.totals.Failed == before {
		j.inARow = 0
	} else if j.inARow++; j.inARow >= failuresInARow {
		return errors.Join(j.out.write(l), fmt.Errorf("%d failures in a row", j.inARow))
	}
	return j.out.write(l)
}

// pace waits until the next letter may be dealt with.
func (j *job) pace(ctx context.Context) error {
	if j.change.Rate <= 0 || j.change.DryRun {
		return ctx.Err()
	}
	due := j.start.Add(time.Duration(float64(j.totals.Total) / j.change.Rate * float64(time.Second)))
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// missing explains a named key of which there was no dead letter.
func (j *job) missing(ctx context.Context) error {
	if j.filter.Key == nil {
		return nil
	}
	found := j.totals.Total > 0
	j.totals.Found = &found
	if found {
		return nil
	}
	records, err := j.s.o.Inbox.Event(ctx, *j.filter.Key)
	if errors.Is(err, inbox.ErrNotFound) {
		return nil
	}
	for _, r := range records {
		if j.filter.Group != "" && r.Group != j.filter.Group {
			continue
		}
		found = true
		if r.State == inbox.Dead {
			continue // and another filter leaves it out
		}
		result := NotDead
		if r.State == inbox.Done && r.Group != queue.Unrouted { // there it means: sent on
			result = AlreadyDone
		}
		if err := j.line(Line{Key: FullKey(r.Key), Group: r.Group, Result: result}); err != nil {
			return err
		}
	}
	return err
}

// replayAll sends letters' events on their way again and then takes them out of
// the dead letters: a crash in between sends the same generation twice, and
// the inbox runs it once.
func (s *Service) replayAll(ctx context.Context, ls []inbox.Letter, c Change) []string {
	results := make([]string, len(ls))
	var wg sync.WaitGroup
	places := make(chan struct{}, sideBySide)
	for i := range ls {
		places <- struct{}{}
		wg.Go(func() {
			results[i] = s.send(ctx, &ls[i], c)
			<-places
		})
	}
	wg.Wait()
	var sent []inbox.Replay
	var of []int
	for i, l := range ls {
		if results[i] == "" {
			sent, of = append(sent, inbox.Replay{Group: l.Group, Key: l.Event.Key, Generation: l.Generation + 1, Run: l.Run}), append(of, i)
		}
	}
	if len(sent) == 0 {
		return results
	}
	oks, err := s.o.Inbox.MarkReplayed(ctx, sent...)
	for n, i := range of {
		switch {
		case err != nil:
			results[i] = failed + "sent, but not recorded: " + err.Error()
		case oks[n] || ls[i].Group == queue.Unrouted:
			results[i] = Replayed
		default:
			results[i] = s.became(ctx, ls[i])
		}
	}
	return results
}

// send sends a letter's event; the result is empty when it is in the queue.
func (s *Service) send(ctx context.Context, l *inbox.Letter, c Change) string {
	switch {
	case c.Unknown != "" && l.Open == "":
		return NotUnknown
	case c.Unknown == "" && !c.Force && l.Open != "":
		return unknownStep + l.Open // not missing: a person must say what became of it
	case c.DryRun:
		return WouldReplay
	}
	if err := s.decide(ctx, l, c); err != nil {
		if errors.Is(err, inbox.ErrNotDead) {
			return s.became(ctx, *l)
		}
		return failed + err.Error()
	}
	group, d := l.Group, wire.Delivery{Event: l.Event, Generation: l.Generation + 1, Run: l.Run}
	if group == queue.Unrouted {
		group, d = "", wire.Delivery{Event: l.Event} // to all that match it, as if for the first time
		d.Parked = ""                                // a person has looked at it
	}
	if err := s.o.Queue.Send(ctx, group, d); err != nil {
		return failed + err.Error()
	}
	return ""
}

// decide records a person's decision before the event is sent. Repeated, it
// changes nothing more.
func (s *Service) decide(ctx context.Context, l *inbox.Letter, c Change) error {
	switch {
	case c.Unknown != "":
		_, err := s.o.Inbox.Resolve(ctx, l.Group, l.Event.Key, l.Generation, c.Unknown == UnknownDone, c.Comment)
		return err
	case c.Force && l.Group == queue.Unrouted:
		return errors.New("no group has run it: replay it without force")
	case c.Force:
		run, err := s.o.Inbox.Force(ctx, l.Group, l.Event.Key, l.Generation, c.Steps, c.Comment)
		l.Run = run
		return err
	}
	return nil
}

// became says what happened to a letter that another hand had first: its
// delivery may have come before the record, which is well.
func (s *Service) became(ctx context.Context, l inbox.Letter) string {
	records, err := s.o.Inbox.Event(ctx, l.Event.Key)
	if err != nil && !errors.Is(err, inbox.ErrNotFound) {
		return failed + err.Error()
	}
	for _, r := range records {
		if r.Group == l.Group && r.Generation > l.Generation {
			return Replayed
		}
	}
	return NotDead
}

func (s *Service) discardAll(ctx context.Context, ls []inbox.Letter, c Change) []string {
	results := make([]string, len(ls))
	targets := make([]inbox.Target, len(ls))
	for i, l := range ls {
		results[i], targets[i] = WouldDrop, inbox.Target{Group: l.Group, Key: l.Event.Key}
	}
	if c.DryRun {
		return results
	}
	oks, err := s.o.Inbox.Discard(ctx, c.Comment, targets...)
	for i := range results {
		switch {
		case err != nil:
			results[i] = failed + err.Error()
		case oks[i]:
			results[i] = Discarded
		default:
			results[i] = NotDead
		}
	}
	return results
}
