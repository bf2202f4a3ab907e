package inbox

import (
	"bytes"
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/wire"
)

// chunk is how many events one statement names, at most.
const chunk = 250

// opening is one event of a Begin.
type opening struct {
	i       int // its place in the slice
	d       wire.Delivery
	digest  [16]byte
	token   hookonce.Token
	verdict *Verdict
	repeats []int // places of further deliveries of the same event
}

// Begin asks what to do with deliveries to a group and, for those to be run,
// takes their leases: all in one transaction, so that an error means that
// nothing was taken. When the database's machine fails, leases of the last
// moments may be forgotten; their holders can then write nothing any more, and
// the events come again. The verdicts stand in the order of the deliveries. Of
// several deliveries of one event in the slice only one can be told to run.
//
// maxCrashes is the number of ended leases in one generation from which on the
// verdict is [Crash]; below 1 it is 1.
func (b *Inbox) Begin(ctx context.Context, group string, ds []wire.Delivery, maxCrashes int) ([]Verdict, error) {
	if len(ds) == 0 {
		return nil, nil
	}
	const tries = 3
	for try := 1; ; try++ {
		verdicts := make([]Verdict, len(ds))
		s := &session{b: b, group: group, now: b.now(), maxCrashes: maxCrashes}
		openings := s.prepare(ds, verdicts)
		err := b.looseTx(ctx, "begin", func(tx *sql.Tx) error {
			s.tx = tx
			return s.run(ctx, openings)
		})
		if err == nil {
			s.answerRepeats(openings, verdicts)
			return verdicts, nil
		}
		if try == tries || !deadlocked(err) {
			return nil, err
		}
	}
}

// session is one Begin under way.
type session struct {
	b          *Inbox
	tx         *sql.Tx
	group      string
	now        time.Time
	maxCrashes int
}

// prepare finds the repeats and sorts the rest, so that two slices meet the
// same events in the same order. Of repeats the highest generation stands for
// all: it decides about the lower ones, and not the other way round.
func (s *session) prepare(ds []wire.Delivery, verdicts []Verdict) []*opening {
	first := make(map[[16]byte]*opening, len(ds))
	openings := make([]*opening, 0, len(ds))
	for i, d := range ds {
		if d.ReceivedAt.IsZero() {
			d.ReceivedAt = s.now
		}
		digest := d.Key.Digest()
		o := first[digest]
		switch {
		case o == nil:
			o = &opening{i: i, d: d, digest: digest, token: hookonce.NewToken()}
			first[digest] = o
			openings = append(openings, o)
		case d.Generation > o.d.Generation, d.Generation == o.d.Generation && d.DeadCopy && !o.d.DeadCopy:
			o.repeats = append(o.repeats, o.i)
			o.i, o.d = i, d
		default:
			o.repeats = append(o.repeats, i)
		}
	}
	for _, o := range openings {
		o.verdict = &verdicts[o.i]
	}
	slices.SortFunc(openings, func(x, y *opening) int { return bytes.Compare(x.digest[:], y.digest[:]) })
	return openings
}

func (s *session) answerRepeats(openings []*opening, verdicts []Verdict) {
	for _, o := range openings {
		for _, i := range o.repeats {
			verdicts[i] = Verdict{Decision: Wait, Until: s.now.Add(shortWait)}
			if o.verdict.Decision == Settle {
				verdicts[i] = Verdict{Decision: Settle}
			}
		}
	}
}

// run inserts first and looks afterwards: an event seen for the first time,
// the usual case, costs one statement for the whole slice.
func (s *session) run(ctx context.Context, openings []*opening) error {
	var known []*opening
	for part := range slices.Chunk(openings, s.b.d.rows) {
		rest, err := s.insert(ctx, part)
		if err != nil {
			return err
		}
		known = append(known, rest...)
	}
	var taken []*opening
	for part := range slices.Chunk(known, chunk) {
		some, err := s.meet(ctx, part)
		if err != nil {
			return err
		}
		taken = append(taken, some...)
	}
	for part := range slices.Chunk(taken, chunk) {
		if err := s.loadSteps(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// insert records the events that have no record and are young enough, and
// returns the others.
func (s *session) insert(ctx context.Context, openings []*opening) ([]*opening, error) {
	var digests, keys, rawTypes, tokens [][]byte
	var sources, types []string
	var generations, runs, received []int64
	for _, o := range openings {
		if s.old(o) {
			continue
		}
		digests, tokens = append(digests, o.digest[:]), append(tokens, o.token[:])
		keys, sources = append(keys, []byte(o.d.Key.String())), append(sources, clean(o.d.Key.Source))
		types, rawTypes = append(types, hookonce.EscapeType(o.d.Type)), append(rawTypes, rawType(o.d.Type))
		generations, runs = append(generations, int64(o.d.Generation)), append(runs, int64(o.d.Run))
		received = append(received, micros(o.d.ReceivedAt))
	}
	if len(digests) == 0 {
		return openings, nil
	}
	var a args
	same := a.add(s.group, string(Running), micros(s.now), micros(s.now.Add(s.b.o.Lease))) + ", 1, 1"
	fresh := make(map[[16]byte]bool, len(digests))
	err := s.b.query(ctx, s.tx, "begin", `INSERT INTO {p}inbox (digest, source, key, type, type_raw, token, generation, run, received_at,
		grp, state, updated_at, lease_until, attempt, attempts) `+
		s.b.d.table(&a, same, blobs(digests), texts(sources), blobs(keys), texts(types), blobs(rawTypes), blobs(tokens),
			ints(generations), ints(runs), ints(received))+` ON CONFLICT DO NOTHING RETURNING digest`, a,
		scanDigests(func(digest [16]byte) { fresh[digest] = true }))
	if err != nil {
		return nil, err
	}
	var rest []*opening
	for _, o := range openings {
		if !fresh[o.digest] {
			rest = append(rest, o)
			continue
		}
		*o.verdict = Verdict{Decision: Run, Lease: s.lease(o, row{attempt: 1, generation: o.d.Generation, run: o.d.Run})}
	}
	return rest, nil
}

// old says that the inbox may have forgotten an event of this age.
func (s *session) old(o *opening) bool { return s.now.Sub(o.d.ReceivedAt) > s.b.o.TTL }

func (s *session) lease(o *opening, r row) Lease {
	return Lease{
		Group: s.group, Key: o.d.Key, Token: o.token,
		Generation: r.generation, Run: r.run, Attempt: r.attempt,
	}
}
