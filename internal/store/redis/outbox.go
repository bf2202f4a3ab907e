package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/entry"
	"github.com/hookonce/hookonce/publisher"
)

var (
	_ publisher.Outbox   = (*Store)(nil)
	_ publisher.Measurer = (*Store)(nil)
)

const (
	// pageEntries and moveBytes keep single calls short: Redis does one thing
	// at a time.
	pageEntries = 64
	settleChunk = 500
	moveBytes   = 2 << 20
	moveEntries = 200
	endedLeases = 16
)

// firstError is the first of the requests' errors, as the store's.
func (s *Store) firstError(reqs []*request) error {
	for _, r := range reqs {
		if r.err != nil {
			return s.unknown(r.err)
		}
	}
	return s.unknown(nil)
}

// Settle removes entries; see [publisher.Outbox]. It needs their events too, to
// count their bytes off.
func (s *Store) Settle(ctx context.Context, entries []hookonce.Entry) error {
	byShard := make([][]any, s.keys.shards)
	for _, e := range entries {
		shard, id := s.keys.streamID(e.ID)
		byShard[shard] = append(byShard[shard], id, entry.Size(e.Event))
	}
	var calls []*request
	for shard, args := range byShard {
		keys := []string{s.keys.outbox(shard), s.keys.counters(shard)}
		for len(args) > 0 {
			n := min(len(args), 2*settleChunk)
			calls = append(calls, settleScript.call(keys, append([]any{s.o.Instance}, args[:n]...)...))
			args = args[n:]
		}
	}
	s.send(ctx, false, calls...)
	return s.firstError(calls)
}

// expired is an instance whose lease on a shard has ended.
type expired struct {
	shard    int
	instance string
}

// touch renews the lease on every shard and returns up to n instances of each
// whose lease has ended.
func (s *Store) touch(ctx context.Context, n int) ([]expired, error) {
	calls := make([]*request, s.keys.shards)
	for shard := range calls {
		calls[shard] = touchScript.call([]string{s.keys.instances(shard)}, s.o.Instance, s.o.Lease.Milliseconds(), n)
	}
	s.send(ctx, false, calls...)
	var ended []expired
	for shard, r := range calls {
		list, _ := r.value.([]any)
		for _, v := range list {
			if instance, ok := v.(string); ok {
				ended = append(ended, expired{shard, instance})
			}
		}
	}
	return ended, s.firstError(calls)
}

// Adopt renews the lease and takes entries over; see [publisher.Outbox]. A
// shard whose node is away does not keep those of the others.
func (s *Store) Adopt(ctx context.Context, n int) (int, error) {
	ended, failed := s.touch(ctx, endedLeases)
	total := 0
	for _, e := range ended {
		for total < n {
			moved, err := s.move(ctx, e, min(n-total, moveEntries))
			total += moved
			if err != nil {
				return total, err
			}
			if moved == 0 {
				break
			}
		}
	}
	return total, failed
}

func (s *Store) move(ctx context.Context, from expired, n int) (int, error) {
	r := moveScript.call([]string{
		s.keys.outbox(from.shard), s.keys.instances(from.shard), s.keys.counters(from.shard),
		s.keys.outboxOf(from.shard, from.instance),
	}, s.o.Instance, from.instance, n, moveBytes)
	s.send(ctx, false, r)
	moved, _ := r.value.(int64)
	return int(moved), s.unknown(r.err)
}

// Stats is the size of the outboxes of all instances: two counters, and a look
// at the first entry of each instance, for each shard.
func (s *Store) Stats(ctx context.Context) (publisher.OutboxStats, error) {
	var st publisher.OutboxStats
	counters := make([]*request, s.keys.shards)
	for shard := range counters {
		name := s.keys.counters(shard)
		counters[shard] = command(name, "hmget", name, "events", "bytes")
	}
	s.send(ctx, false, counters...)
	if err := s.firstError(counters); err != nil {
		return st, err
	}
	var filled []int
	for shard, r := range counters {
		values, _ := r.value.([]any)
		if len(values) != 2 {
			return st, s.unknown(fmt.Errorf("HMGET answered %d values", len(values)))
		}
		events := count(values[0])
		if events > 0 {
			filled = append(filled, shard)
		}
		st.Events += events
		st.Bytes += count(values[1])
	}
	var err error
	st.Oldest, err = s.oldest(ctx, filled)
	return st, err
}

// oldest is when the oldest entry of some shards was claimed.
func (s *Store) oldest(ctx context.Context, shards []int) (at time.Time, err error) {
	lists := make([]*request, len(shards))
	for i, shard := range shards {
		name := s.keys.instances(shard)
		lists[i] = command(name, "zrange", name, 0, -1)
	}
	s.send(ctx, false, lists...)
	if err := s.firstError(lists); err != nil {
		return at, err
	}
	var looks []*request
	for i, r := range lists {
		instances, _ := r.value.([]any)
		for _, v := range instances {
			instance, _ := v.(string)
			looks = append(looks, firstScript.call([]string{s.keys.outboxOf(shards[i], instance)}))
		}
	}
	s.send(ctx, false, looks...)
	for _, r := range looks {
		if ms := count(r.value); ms > 0 && (at.IsZero() || time.UnixMilli(ms).Before(at)) {
			at = time.UnixMilli(ms).UTC()
		}
	}
	return at, s.firstError(looks)
}
