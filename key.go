package hookonce

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// MaxMessageID is the longest message id, in bytes: AMQP's short string.
const MaxMessageID = 255

// MaxKey is the longest key part, in bytes. A longer one is refused before the claim.
const MaxKey = 16 << 10

// Key is the idempotency key of an event: the source it came through and the
// identifier that is stable across redeliveries and unique per business event.
type Key struct {
	// Source is the configured name of the source; it holds no slash.
	Source string
	// ID is the key within the source: any bytes, at most [MaxKey].
	ID string
}

// String is the full key, <source>/<id>, as it stands in message ids and JSON.
func (k Key) String() string { return k.Source + "/" + k.ID }

// Escaped is the full key for command lines, URLs and HTTP headers: bytes of
// the id outside printable ASCII, space, "%" and "/" are percent-escaped.
func (k Key) Escaped() string {
	const upper = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(k.Source) + 1 + len(k.ID))
	b.WriteString(k.Source)
	b.WriteByte('/')
	for i := 0; i < len(k.ID); i++ {
		c := k.ID[i]
		if c <= ' ' || c >= 0x7f || c == '%' || c == '/' {
			b.WriteByte('%')
			b.WriteByte(upper[c>>4])
			b.WriteByte(upper[c&15])
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// ErrBadKey says that a text is not a full key.
var ErrBadKey = errors.New("not a full key (<source>/<key>)")

// ParseKey reads a full key as [Key.Escaped] writes it. A "%" that starts no
// escape, and a further "/", stand for themselves, so that a key pasted from
// JSON is understood too.
func ParseKey(s string) (Key, error) {
	source, id, ok := strings.Cut(s, "/")
	if !ok || source == "" || id == "" {
		return Key{}, fmt.Errorf("%q: %w", s, ErrBadKey)
	}
	var b strings.Builder
	b.Grow(len(id))
	for i := 0; i < len(id); i++ {
		if id[i] == '%' && i+2 < len(id) {
			if raw, err := hex.DecodeString(id[i+1 : i+3]); err == nil {
				b.WriteByte(raw[0])
				i += 2
				continue
			}
		}
		b.WriteByte(id[i])
	}
	return Key{Source: source, ID: b.String()}, nil
}

// MessageID is the full key, or, where that is over [MaxMessageID] bytes, a
// readable prefix, "~" and the SHA-256 of the full key in hexadecimal.
func (k Key) MessageID() string {
	full := k.String()
	if len(full) <= MaxMessageID {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	const tail = 1 + 2*sha256.Size
	return full[:MaxMessageID-tail] + "~" + hex.EncodeToString(sum[:])
}

// Digest is what SQL stores look a key up by: the first 16 bytes of the
// SHA-256 of the full key.
func (k Key) Digest() [16]byte {
	sum := sha256.Sum256([]byte(k.String()))
	return [16]byte(sum[:16])
}

// MaxType is the longest escaped type, in bytes.
const MaxType = 128

// EscapeType makes an event type fit for routing keys and patterns: bytes
// outside [A-Za-z0-9._:-] become "_" and two hexadecimal digits, a result
// over [MaxType] bytes is cut and ends in a hash of the whole, and an empty
// type is "unknown".
func EscapeType(t string) string {
	if t == "" {
		return "unknown"
	}
	clean := len(t) <= MaxType
	for i := 0; clean && i < len(t); i++ {
		clean = typeByte(t[i])
	}
	if clean {
		return t
	}
	const lower = "0123456789abcdef"
	var b strings.Builder
	for i := 0; i < len(t); i++ {
		if typeByte(t[i]) {
			b.WriteByte(t[i])
			continue
		}
		b.WriteByte('_')
		b.WriteByte(lower[t[i]>>4])
		b.WriteByte(lower[t[i]&15])
	}
	escaped := b.String()
	if len(escaped) <= MaxType {
		return escaped
	}
	sum := sha256.Sum256([]byte(t))
	return escaped[:MaxType-17] + "-" + hex.EncodeToString(sum[:8])
}

func typeByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '.' || c == '_' || c == ':' || c == '-'
}
