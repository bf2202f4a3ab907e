// Package entry is how the stores write an event down, and what they share
// about claims: the encoding of an event and of a delivery, the checks of a
// claim's data, and the answer to a key that one request repeats.
//
// An encoding starts with a byte that names its version; a store reads what
// every earlier release of Hookonce wrote. Strings and byte strings are a
// length (unsigned varint) and their bytes.
package entry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
)

// ErrCorrupt says that bytes are not an encoded event of a known version.
var ErrCorrupt = errors.New("stored event is unreadable")

const eventV1 = 1

// Marshal encodes an event. The same event always gives the same bytes.
func Marshal(e hookonce.Event) []byte {
	return appendEvent(make([]byte, 0, Size(e)), e)
}

// Size is the length of Marshal(e), without making it.
func Size(e hookonce.Event) int {
	n := 1 + varintLen(uint64(len(e.Header))) + varintLen(zigzag(e.ReceivedAt.Unix())) + varintLen(uint64(e.ReceivedAt.Nanosecond()))
	for k, v := range e.Header {
		n += stringLen(len(k)) + stringLen(len(v))
	}
	for _, l := range []int{
		len(e.Key.Source), len(e.Key.ID), len(e.Type), len(e.ContentType), len(e.Body),
		len(e.Context), len(e.Unmatched), len(e.Parked), len(e.TraceParent),
	} {
		n += stringLen(l)
	}
	return n
}

func stringLen(n int) int { return varintLen(uint64(n)) + n }

func varintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

func zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

func appendEvent(b []byte, e hookonce.Event) []byte {
	b = append(b, eventV1)
	b = appendString(b, e.Key.Source)
	b = appendString(b, e.Key.ID)
	b = appendString(b, e.Type)
	b = appendString(b, e.ContentType)
	b = appendTime(b, e.ReceivedAt)
	b = appendString(b, e.Unmatched)
	b = appendString(b, e.Parked)
	b = appendString(b, e.TraceParent)
	b = appendString(b, e.Context)
	b = binary.AppendUvarint(b, uint64(len(e.Header)))
	for _, k := range slices.Sorted(maps.Keys(e.Header)) {
		b = appendString(b, k)
		b = appendString(b, e.Header[k])
	}
	return appendString(b, e.Body)
}

func appendTime(b []byte, t time.Time) []byte {
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

func appendString[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Unmarshal decodes what Marshal wrote. Empty bodies, contexts and headers
// come back as nil, times in UTC. Its errors wrap [ErrCorrupt].
func Unmarshal(data []byte) (hookonce.Event, error) {
	r := reader{rest: data}
	e := r.event()
	return e, r.end()
}

// reader takes an encoding apart; the first fault is kept and ends it.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) event() hookonce.Event {
	r.version(eventV1)
	var e hookonce.Event
	e.Key.Source, e.Key.ID = r.string(), r.string()
	e.Type, e.ContentType = r.string(), r.string()
	e.ReceivedAt = r.time()
	e.Unmatched, e.Parked, e.TraceParent = r.string(), r.string(), r.string()
	e.Context = r.bytes()
	if n := r.count(); n > 0 {
		e.Header = make(map[string]string, n)
		for range n {
			k := r.string()
			e.Header[k] = r.string()
		}
	}
	e.Body = r.bytes()
	return e
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrCorrupt, what)
	}
	r.rest = nil
}

func (r *reader) end() error {
	if r.err == nil && len(r.rest) > 0 {
		r.fail(fmt.Sprintf("%d bytes too many", len(r.rest)))
	}
	return r.err
}

func (r *reader) version(want byte) {
	if v := r.byte(); r.err == nil && v != want {
		r.fail(fmt.Sprintf("version %d, this release reads %d", v, want))
	}
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.fail("too short")
		return 0
	}
	v := r.rest[0]
	r.rest = r.rest[1:]
	return v
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail("bad number")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *reader) time() time.Time {
	sec, nsec := r.varint(), r.uvarint()
	if nsec >= 1e9 {
		r.fail("bad time")
		return time.Time{}
	}
	return time.Unix(sec, int64(nsec)).UTC()
}

// count is a number of things of at least two bytes each, so that a corrupted
// one cannot ask for more memory than the data has.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.rest)/2) {
		r.fail("bad count")
		return 0
	}
	return int(n)
}

func (r *reader) take() []byte {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.fail("too short")
		return nil
	}
	v := r.rest[:n]
	r.rest = r.rest[n:]
	return v
}

func (r *reader) string() string { return string(r.take()) }

func (r *reader) bytes() []byte {
	v := r.take()
	if len(v) == 0 {
		return nil
	}
	return slices.Clone(v)
}
