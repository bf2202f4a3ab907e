package entry

import (
	"encoding/binary"

	"github.com/hookonce/hookonce/internal/wire"
)

const deliveryV1 = 1

// Flags of an encoded delivery.
const (
	flagRerouted = 1 << iota
	flagDeadCopy
	flagDue
	flagUnmatched
)

// MarshalDelivery encodes an event together with the facts that travel beside it.
func MarshalDelivery(d wire.Delivery) []byte {
	b := make([]byte, 0, 32+len(d.Reason)+Size(d.Event))
	b = append(b, deliveryV1)
	var flags byte
	if d.Rerouted {
		flags |= flagRerouted
	}
	if d.DeadCopy {
		flags |= flagDeadCopy
	}
	if !d.Due.IsZero() {
		flags |= flagDue
	}
	if !d.UnmatchedSince.IsZero() {
		flags |= flagUnmatched
	}
	b = append(b, flags)
	b = binary.AppendVarint(b, int64(d.Attempt))
	b = binary.AppendVarint(b, int64(d.Generation))
	b = binary.AppendVarint(b, int64(d.Run))
	b = appendString(b, d.Reason)
	if !d.Due.IsZero() {
		b = appendTime(b, d.Due)
	}
	if !d.UnmatchedSince.IsZero() {
		b = appendTime(b, d.UnmatchedSince)
	}
	return appendEvent(b, d.Event)
}

// UnmarshalDelivery decodes what MarshalDelivery wrote; see [Unmarshal].
func UnmarshalDelivery(data []byte) (wire.Delivery, error) {
	r := reader{rest: data}
	r.version(deliveryV1)
	flags := r.byte()
	d := wire.Delivery{
		Rerouted:   flags&flagRerouted != 0,
		DeadCopy:   flags&flagDeadCopy != 0,
		Attempt:    int(r.varint()),
		Generation: int(r.varint()),
		Run:        int(r.varint()),
		Reason:     r.string(),
	}
	if flags&flagDue != 0 {
		d.Due = r.time()
	}
	if flags&flagUnmatched != 0 {
		d.UnmatchedSince = r.time()
	}
	d.Event = r.event()
	return d, r.end()
}
