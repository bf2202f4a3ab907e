package redis

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

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

// Pending returns entries; see [publisher.Outbox]. An entry that cannot be read
// is left where it is, logged, and not returned.
func (s *Store) Pending(ctx context.Context, after hookonce.EntryID, n int) ([]hookonce.Entry, error) {
	var out []hookonce.Entry
	for len(out) < n {
		next, ok := following(after)
		if !ok {
			break
		}
		want := min(n-len(out), pageEntries)
		page, err := s.client.XRangeN(ctx, s.keys.outbox(), formatID(next), "+", int64(want)).Result()
		if err = s.unknown(err); err != nil {
			return nil, err
		}
		for _, m := range page {
			id, err := parseID(m.ID)
			if err != nil {
				return nil, s.unknown(err)
			}
			after = id
			data, _ := m.Values["d"].(string)
			e, err := entry.Unmarshal([]byte(data))
			if err != nil {
				s.o.Logger.ErrorContext(ctx, "outbox entry cannot be read and stays where it is", "entry", m.ID, "err", err)
				continue
			}
			out = append(out, hookonce.Entry{ID: id, Event: e})
		}
		if len(page) < want {
			break
		}
	}
	return out, nil
}

// following is the least id above id. (Redis before 6.2 has no open ranges.)
func following(id hookonce.EntryID) (hookonce.EntryID, bool) {
	switch {
	case id.Lo < math.MaxUint64:
		return hookonce.EntryID{Hi: id.Hi, Lo: id.Lo + 1}, true
	case id.Hi < math.MaxUint64:
		return hookonce.EntryID{Hi: id.Hi + 1}, true
	}
	return id, false
}

// Settle removes entries; see [publisher.Outbox]. It needs their events too, to
// count their bytes off.
func (s *Store) Settle(ctx context.Context, entries []hookonce.Entry) error {
	for len(entries) > 0 {
		n := min(len(entries), settleChunk)
		args := append(make([]any, 0, 1+2*n), s.o.Instance)
		for _, e := range entries[:n] {
			args = append(args, formatID(e.ID), entry.Size(e.Event))
		}
		err := settleScript.Run(ctx, s.client, []string{s.keys.outbox(), s.keys.counters()}, args...).Err()
		if err = s.unknown(err); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

// touch renews the lease and returns up to n instances whose lease has ended.
func (s *Store) touch(ctx context.Context, n int) ([]string, error) {
	ended, err := touchScript.Run(ctx, s.client, []string{s.keys.instances()}, s.o.Instance, s.o.Lease.Milliseconds(), n).StringSlice()
	return ended, s.unknown(err)
}

// Adopt renews the lease and takes entries over; see [publisher.Outbox].
func (s *Store) Adopt(ctx context.Context, n int) (int, error) {
	ended, err := s.touch(ctx, endedLeases)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, instance := range ended {
		for total < n {
			moved, err := s.move(ctx, instance, min(n-total, moveEntries))
			total += moved
			if err != nil {
				return total, err
			}
			if moved == 0 {
				break
			}
		}
	}
	return total, nil
}

func (s *Store) move(ctx context.Context, instance string, n int) (int, error) {
	moved, err := moveScript.Run(ctx, s.client,
		[]string{s.keys.outbox(), s.keys.instances(), s.keys.counters(), s.keys.outboxOf(instance)},
		s.o.Instance, instance, n, moveBytes).Int()
	return moved, s.unknown(err)
}

// Stats is the size of the outboxes of all instances: two counters, and a look
// at the first entry of each instance.
func (s *Store) Stats(ctx context.Context) (publisher.OutboxStats, error) {
	var st publisher.OutboxStats
	values, err := s.client.HMGet(ctx, s.keys.counters(), "events", "bytes").Result()
	if err = s.unknown(err); err != nil {
		return st, err
	}
	st.Events, st.Bytes = count(values[0]), count(values[1])
	if st.Events == 0 {
		return st, nil
	}
	instances, err := s.client.ZRange(ctx, s.keys.instances(), 0, -1).Result()
	if err = s.unknown(err); err != nil {
		return st, err
	}
	for _, instance := range instances {
		ms, err := firstScript.Run(ctx, s.client, []string{s.keys.outboxOf(instance)}).Int64()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err = s.unknown(err); err != nil {
			return st, err
		}
		if at := time.UnixMilli(ms).UTC(); st.Oldest.IsZero() || at.Before(st.Oldest) {
			st.Oldest = at
		}
	}
	return st, nil
}

// count reads a counter; a missing one is 0.
func count(v any) int64 {
	s, _ := v.(string)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}
