package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/entry"
	"github.com/hookonce/hookonce/publisher"
)

const (
	// firstEntries is how many entries are read at first, at least one of each shard.
	firstEntries = 8
	// smallEntry is the average body, in bytes, below which more are.
	smallEntry = 128 << 10
)

// reading is how far the outbox of one shard has been read.
type reading struct {
	shard   int
	next    string // the stream id to go on from
	ended   bool
	entries []hookonce.Entry // read, and not returned yet
}

// Pending returns entries; see [publisher.Outbox]. The shards of a cluster are
// merged in the order of the ids. An entry that cannot be read is left where it
// is, logged, and not returned.
func (s *Store) Pending(ctx context.Context, after hookonce.EntryID, n int) ([]hookonce.Entry, error) {
	shards := make([]*reading, s.keys.shards)
	for i := range shards {
		shards[i] = &reading{shard: i, next: s.keys.following(i, after)}
	}
	// Few at first: they tell how large the entries are.
	page := min(n, max(firstEntries/len(shards), 1))
	var out []hookonce.Entry
	for size := 0; len(out) < n && size < publisher.PageBytes; {
		if err := s.fill(ctx, shards, page); err != nil {
			return nil, err
		}
		merged, bytes := merge(shards, n-len(out), publisher.PageBytes-size)
		out, size = append(out, merged...), size+bytes
		if size < len(out)*smallEntry {
			// A shard's part of what is wanted, and one more for its neighbour's luck.
			page = min(n/len(shards)+1, pageEntries)
		}
		if len(merged) == 0 {
			break
		}
	}
	return out, nil
}

// merge takes entries in the order of their ids, n of them at most and until
// they fill room, or until one shard has none ready though it may have more.
func merge(shards []*reading, n, room int) (out []hookonce.Entry, bytes int) {
	for len(out) < n && bytes < room {
		var first *reading
		for _, r := range shards {
			switch {
			case len(r.entries) == 0 && !r.ended:
				return out, bytes
			case len(r.entries) == 0:
			case first == nil || less(r.entries[0].ID, first.entries[0].ID):
				first = r
			}
		}
		if first == nil {
			break
		}
		out, bytes = append(out, first.entries[0]), bytes+len(first.entries[0].Event.Body)
		first.entries = first.entries[1:]
	}
	return out, bytes
}

// fill reads until every shard has an entry ready, or has ended.
func (s *Store) fill(ctx context.Context, shards []*reading, page int) error {
	for {
		var reads []*request
		var of []*reading
		for _, r := range shards {
			if len(r.entries) == 0 && !r.ended {
				name := s.keys.outbox(r.shard)
				reads = append(reads, command(name, "xrange", name, r.next, "+", "count", page))
				of = append(of, r)
			}
		}
		if len(reads) == 0 {
			return nil
		}
		s.send(ctx, false, reads...)
		if err := s.firstError(reads); err != nil {
			return err
		}
		for i, r := range of {
			if err := s.take(ctx, r, reads[i].value, page); err != nil {
				return s.unknown(err)
			}
		}
	}
}

// take understands a page of a shard's stream.
func (s *Store) take(ctx context.Context, r *reading, page any, size int) error {
	list, _ := page.([]any)
	r.ended = len(list) < size
	for _, v := range list {
		parts, _ := v.([]any)
		if len(parts) != 2 {
			return fmt.Errorf("XRANGE answered an entry of %d parts", len(parts))
		}
		text, _ := parts[0].(string)
		id, err := s.keys.entryID(r.shard, text)
		if err != nil {
			return err
		}
		if r.next = s.keys.following(r.shard, id); id.Hi > 0 && r.next == "0-0" {
			r.ended = true
		}
		fields, _ := parts[1].([]any)
		data := ""
		for i := 0; i+1 < len(fields); i += 2 {
			if fields[i] == "d" {
				data, _ = fields[i+1].(string)
			}
		}
		e, err := entry.Unmarshal([]byte(data))
		if err != nil {
			s.o.Logger.ErrorContext(ctx, "outbox entry cannot be read and stays where it is", "entry", text, "err", err)
			continue
		}
		r.entries = append(r.entries, hookonce.Entry{ID: id, Event: e})
	}
	return nil
}

// count reads a number; anything else is 0.
func count(v any) int64 {
	switch v := v.(type) {
	case int64:
		return max(v, 0)
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return max(n, 0)
		}
	}
	return 0
}
