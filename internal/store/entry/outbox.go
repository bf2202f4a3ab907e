package entry

import "time"

// PageBytes bounds the events of one page of an outbox, up to its last entry.
const PageBytes = 8 << 20

// Stats is the size of an outbox over all instances.
type Stats struct {
	Events, Bytes, SetAside int64
	// Oldest is when the oldest entry was claimed; zero when there is none.
	Oldest time.Time
}
