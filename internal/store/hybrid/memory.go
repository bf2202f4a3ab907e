package hybrid

import (
	"sync"

	"github.com/hookonce/hookonce"
)

// keyed is a mark and the keys it is for.
type keyed struct {
	keys []hookonce.Key
	mark mark
}

// memory keeps what will be marked, by outbox entry, until the entry is
// settled. Beyond its limit it forgets the oldest.
type memory struct {
	limit int

	mu    sync.Mutex
	kept  map[hookonce.EntryID]keyed
	order []hookonce.EntryID // of arrival; settled ones are still in it
}

// remember keeps a claim that is New for when its entry is settled.
func (s *Store) remember(c hookonce.Claim, got hookonce.Claimed) {
	if got.Outcome != hookonce.New || got.Entry == (hookonce.EntryID{}) {
		return
	}
	s.kept.add(got.Entry, keyed{keysOf(c), mark{
		event: got.Key, token: c.Token, fingerprint: got.Fingerprint,
		firstSeen: got.FirstSeen, expires: got.FirstSeen.Add(c.TTL), first: got.First,
	}})
}

func (m *memory) add(id hookonce.EntryID, k keyed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[hookonce.EntryID]keyed{}
	}
	if _, ok := m.kept[id]; !ok {
		m.order = append(m.order, id)
	}
	m.kept[id] = k
	for len(m.kept) > m.limit {
		delete(m.kept, m.order[0])
		m.order = m.order[1:]
	}
	if len(m.order) > 2*m.limit {
		m.compact()
	}
}

// compact leaves out of the order what is no longer kept.
func (m *memory) compact() {
	order := make([]hookonce.EntryID, 0, m.limit+1)
	for _, id := range m.order {
		if _, ok := m.kept[id]; ok {
			order = append(order, id)
		}
	}
	m.order = order
}

// take removes what is kept of entries, and returns it.
func (m *memory) take(entries []hookonce.Entry) []keyed {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []keyed
	for _, e := range entries {
		if k, ok := m.kept[e.ID]; ok {
			out = append(out, k)
			delete(m.kept, e.ID)
		}
	}
	return out
}
