package inbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hookonce/hookonce"
)

const letterColumns = `digest, grp, key, type, type_raw, content_type, body, headers, context, traceparent, unmatched, parked,
	received_at, reason, step, error, attempts, generation, run, dead_at, coalesce((SELECT min(s.name) FROM {p}steps s
	WHERE s.digest = d.digest AND s.grp = d.grp AND s.run = d.run AND s.state IN ('started', 'unknown')), '')`

// Letters lists dead letters, those that died first in front, at most n at a
// time. Go on with the cursor until it is empty, which it may be beside the
// last letters. Since (inclusive) and Until (exclusive) mean the time of death;
// State is not a filter here.
func (b *Inbox) Letters(ctx context.Context, f Filter, after Cursor, n int) ([]Letter, Cursor, error) {
	wants, err := typeMatcher(f.Type)
	if err != nil {
		return nil, "", err
	}
	var letters []Letter
	for {
		w := b.deadWhere(f)
		if err := w.after(after, "dead_at", ">"); err != nil {
			return nil, "", err
		}
		var last place
		seen := 0
		err := b.query(ctx, b.db, "list dead letters", `SELECT `+letterColumns+` FROM {p}dead d WHERE `+w.String()+
			` ORDER BY dead_at, digest, grp LIMIT `+w.a.add(n-len(letters)), w.a, func(rs *sql.Rows) error {
			l, escaped, digest, err := scanLetter(rs)
			if err != nil {
				return err
			}
			seen++
			last = place{micros(l.DeadAt), digest, l.Group}
			if wants(escaped) {
				letters = append(letters, l)
			}
			return nil
		})
		switch {
		case err != nil:
			return nil, "", err
		case seen == 0:
			return letters, "", nil
		}
		after = last.cursor()
		if len(letters) >= n {
			return letters, after, nil
		}
	}
}

// deadWhere is a filter over the dead letters.
func (b *Inbox) deadWhere(f Filter) *where {
	w := &where{d: b.d}
	w.common(f, "error", "dead_at")
	if f.Reason != "" {
		w.add("reason = %s", clean(string(f.Reason)))
	}
	return w
}

// Letter is one dead letter; [ErrNotFound] when the event is not dead in the group.
func (b *Inbox) Letter(ctx context.Context, group string, key hookonce.Key) (Letter, error) {
	digest := key.Digest()
	var found *Letter
	err := b.query(ctx, b.db, "dead letter", `SELECT `+letterColumns+` FROM {p}dead d WHERE digest = $1 AND grp = $2`,
		[]any{digest[:], group}, func(rs *sql.Rows) error {
			l, _, _, err := scanLetter(rs)
			found = &l
			return err
		})
	if err != nil {
		return Letter{}, err
	}
	if found == nil {
		return Letter{}, fmt.Errorf("dead letter %s of group %s: %w", key.Escaped(), group, ErrNotFound)
	}
	return *found, nil
}

func scanLetter(rs *sql.Rows) (l Letter, escaped string, digest []byte, err error) {
	var key, rawType, contentType, traceparent []byte
	var headers, reason string
	var received, died int64
	e := &l.Event
	if err := rs.Scan(&digest, &l.Group, &key, &escaped, &rawType, &contentType, &e.Body, &headers, &e.Context, &traceparent,
		&e.Unmatched, &e.Parked, &received, &reason, &l.Step, &l.Error, &l.Attempts, &l.Generation, &l.Run, &died, &l.Open); err != nil {
		return l, "", nil, err
	}
	if err := json.Unmarshal([]byte(headers), &e.Header); err != nil {
		return l, "", nil, fmt.Errorf("headers of a dead letter: %w", err)
	}
	if len(e.Context) == 0 {
		e.Context = nil
	}
	e.Key, e.Type, e.ContentType, e.TraceParent = keyOf(key), fullType(escaped, rawType), string(contentType), string(traceparent)
	e.ReceivedAt, l.DeadAt, l.Reason = fromMicros(received), fromMicros(died), Reason(reason)
	return l, escaped, digest, nil
}

// DeadGroups counts dead letters that died alike: same group, type, reason
// and error, the last without its numbers, ids and quoted values. The largest
// come first.
func (b *Inbox) DeadGroups(ctx context.Context, f Filter) ([]DeadGroup, error) {
	wants, err := typeMatcher(f.Type)
	if err != nil {
		return nil, err
	}
	w := b.deadWhere(f)
	var groups []DeadGroup
	err = b.query(ctx, b.db, "group dead letters", `SELECT grp, type, reason, error_print, count(*), min(dead_at), max(dead_at)
		FROM {p}dead WHERE `+w.String()+` GROUP BY grp, type, reason, error_print
		ORDER BY count(*) DESC, grp, type, reason, error_print`, w.a, func(rs *sql.Rows) error {
		var g DeadGroup
		var reason string
		var first, last int64
		if err := rs.Scan(&g.Group, &g.Type, &reason, &g.Error, &g.Count, &first, &last); err != nil {
			return err
		}
		g.Reason, g.First, g.Last = Reason(reason), fromMicros(first), fromMicros(last)
		if wants(g.Type) {
			groups = append(groups, g)
		}
		return nil
	})
	return groups, err
}

// CountDead counts the dead letters of each group that has any.
func (b *Inbox) CountDead(ctx context.Context) (map[string]int64, error) {
	counts := make(map[string]int64)
	err := b.query(ctx, b.db, "count dead letters", `SELECT grp, count(*) FROM {p}dead GROUP BY grp`, nil, func(rs *sql.Rows) error {
		var group string
		var n int64
		if err := rs.Scan(&group, &n); err != nil {
			return err
		}
		counts[group] = n
		return nil
	})
	return counts, err
}

// Generations are the present generations of those events that have a record
// in a group, by the digests of their keys, and whether they are dead.
func (b *Inbox) Generations(ctx context.Context, group string, keys []hookonce.Key) (map[[16]byte]Generation, error) {
	found := make(map[[16]byte]Generation, len(keys))
	for part := range slices.Chunk(keys, chunk) {
		digests := make([][]byte, len(part))
		for i, k := range part {
			digest := k.Digest()
			digests[i] = digest[:]
		}
		var a args
		err := b.query(ctx, b.db, "generations", `SELECT digest, generation, state FROM {p}inbox WHERE digest `+b.d.in(&a, digests)+
			` AND grp = `+a.add(group), a, func(rs *sql.Rows) error {
			var digest []byte
			var g Generation
			var state string
			if err := rs.Scan(&digest, &g.Number, &state); err != nil {
				return err
			}
			g.Dead = State(state) == Dead
			key, err := asDigest(digest)
			found[key] = g
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Generation is where an event stands among its replays.
type Generation struct {
	Number int
	Dead   bool
}
