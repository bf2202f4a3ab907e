package publisher

import (
	"context"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/entry"
)

// Outbox is what the relay needs of a store. Entries belong to the instance
// that claimed them, as long as its lease lasts; the lease is the instance's,
// not the entry's, and Adopt renews it. Implementations never retry.
type Outbox interface {
	// Pending returns up to n entries of this instance with ids above after, in
	// ascending order, fewer when they are large: the page ends with the entry
	// that fills [PageBytes]. Only an empty page is the end. An entry that is
	// being published is returned too.
	Pending(ctx context.Context, after hookonce.EntryID, n int) ([]hookonce.Entry, error)
	// Settle removes entries: the broker has confirmed them. Unknown ids are no error.
	Settle(ctx context.Context, entries []hookonce.Entry) error
	// Adopt renews this instance's lease, then takes over up to n entries of
	// instances whose lease has ended and says how many it took. They are
	// Pending from then on, with new ids.
	Adopt(ctx context.Context, n int) (int, error)
}

// PageBytes bounds the events of one page of Pending, up to its last entry.
const PageBytes = entry.PageBytes

// OutboxStats is the size of an outbox over all instances.
type OutboxStats = entry.Stats

// Measurer is an outbox that knows its size, cheaply.
type Measurer interface {
	Stats(ctx context.Context) (OutboxStats, error)
}
