package redis

import (
	"encoding/binary"
	"regexp"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
)

// The value of a claim, packed because there are many of them:
//
//	"hk1" token(16) fingerprint(16) first-seen(8, ms) status(2)
//	then, each with a varint of its length: looked-up key, event key, answer body
//	then "@" and the outbox entry's id, as Redis writes it
//
// The looked-up key is empty unless the claim's name has the short form; the
// event key is empty when it is the looked-up key. The script reads only the
// magic and the token, and appends the id.
const (
	magic     = "hk1"
	fixedPart = len(magic) + 16 + 16 + 8 + 2
)

// streamID is what Redis gives an entry.
var streamID = regexp.MustCompile(`^\d+-\d+$`)

// pack is the value under one of a claim's keys, up to the "@" before the id of
// its entry.
func pack(c hookonce.Claim, key hookonce.Key, firstSeen time.Time) []byte {
	var lookup, event string
	if shortened(key) {
		lookup = key.String()
	}
	if key != c.Event.Key {
		event = c.Event.Key.String()
	}
	b := make([]byte, 0, fixedPart+len(lookup)+len(event)+len(c.Answer.Body)+12)
	b = append(b, magic...)
	b = append(b, c.Token[:]...)
	b = append(b, c.Fingerprint[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(firstSeen.UnixMilli()))
	b = binary.BigEndian.AppendUint16(b, uint16(c.Answer.Status))
	for _, s := range []string{lookup, event, c.Answer.Body} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return append(b, '@')
}

// unpack reads the value that was found under the name of a key's claim.
func unpack(key hookonce.Key, v string) (c hookonce.Claimed, token hookonce.Token, err error) {
	if len(v) < fixedPart || v[:len(magic)] != magic {
		return c, token, errForeign
	}
	copy(token[:], v[len(magic):])
	rest := []byte(v[len(magic)+16:])
	copy(c.Fingerprint[:], rest)
	c.FirstSeen = time.UnixMilli(int64(binary.BigEndian.Uint64(rest[16:]))).UTC()
	c.First.Status = int(binary.BigEndian.Uint16(rest[24:]))
	rest = rest[26:]
	var texts [3]string
	for i := range texts {
		n, used := binary.Uvarint(rest)
		if used <= 0 || n > uint64(len(rest)-used) {
			return hookonce.Claimed{}, token, errForeign
		}
		texts[i], rest = string(rest[used:used+int(n)]), rest[used+int(n):]
	}
	if shortened(key) != (texts[0] != "") || texts[0] != "" && texts[0] != key.String() {
		return hookonce.Claimed{}, token, errShared
	}
	id, ok := strings.CutPrefix(string(rest), "@")
	if !ok || !streamID.MatchString(id) {
		return hookonce.Claimed{}, token, errForeign
	}
	c.Key = key
	if texts[1] != "" {
		source, id, ok := strings.Cut(texts[1], "/")
		if !ok {
			return hookonce.Claimed{}, token, errForeign
		}
		c.Key = hookonce.Key{Source: source, ID: id}
	}
	c.First.Body = texts[2]
	return c, token, nil
}
