package hybrid

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
)

// mark says that the event of a claim is confirmed.
type mark struct {
	event              hookonce.Key // of the first delivery
	token              hookonce.Token
	fingerprint        [16]byte
	firstSeen, expires time.Time
	first              hookonce.Answer
}

// The value of a mark:
//
//	"hm1" digest of the key(16) token(16) fingerprint(16) first-seen(8, ms) expires(8, ms) status(2)
//	then the event's full key and the answer's body, the first with a varint of its length
//
// The digest tells keys apart that share a name in Redis; the event's key is
// empty when it is the key.
const (
	magic     = "hm1"
	fixedPart = len(magic) + 16 + 16 + 16 + 8 + 8 + 2
)

func (m *mark) pack(key hookonce.Key) []byte {
	event := ""
	if m.event != key {
		event = m.event.String()
	}
	digest := key.Digest()
	b := make([]byte, 0, fixedPart+3+len(event)+len(m.first.Body))
	b = append(b, magic...)
	b = append(b, digest[:]...)
	b = append(b, m.token[:]...)
	b = append(b, m.fingerprint[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(m.firstSeen.UnixMilli()))
	b = binary.BigEndian.AppendUint64(b, uint64(m.expires.UnixMilli()))
	b = binary.BigEndian.AppendUint16(b, uint16(m.first.Status))
	b = binary.AppendUvarint(b, uint64(len(event)))
	b = append(b, event...)
	return append(b, m.first.Body...)
}

// unpack reads what was found under a key; what is not the key's mark is no mark.
func unpack(key hookonce.Key, v []byte) (*mark, bool) {
	if len(v) <= fixedPart || string(v[:len(magic)]) != magic {
		return nil, false
	}
	rest := v[len(magic):]
	if [16]byte(rest[:16]) != key.Digest() {
		return nil, false
	}
	rest = rest[16:]
	m := &mark{event: key, token: hookonce.Token(rest[:16]), fingerprint: [16]byte(rest[16:32])}
	rest = rest[32:]
	m.firstSeen = time.UnixMilli(int64(binary.BigEndian.Uint64(rest))).UTC()
	m.expires = time.UnixMilli(int64(binary.BigEndian.Uint64(rest[8:])))
	m.first.Status = int(binary.BigEndian.Uint16(rest[16:]))
	rest = rest[18:]
	n, used := binary.Uvarint(rest)
	if used <= 0 || n > uint64(len(rest)-used) || m.first.Status < 200 || m.first.Status > 299 {
		return nil, false
	}
	event, body := string(rest[used:used+int(n)]), rest[used+int(n):]
	m.first.Body = string(body)
	if event != "" {
		source, id, ok := strings.Cut(event, "/")
		if !ok {
			return nil, false
		}
		m.event = hookonce.Key{Source: source, ID: id}
	}
	return m, true
}
