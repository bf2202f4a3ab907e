package redis

import (
	"strings"

	"github.com/hookonce/hookonce"
)

// names builds every key name. They all come from here, so that the hash tags
// of Redis Cluster have one place to go.
type names struct{ instance string }

func (n names) outbox() string { return n.outboxOf(n.instance) }

func (n names) outboxOf(instance string) string { return "hookonce:outbox:" + instance }

func (names) instances() string { return "hookonce:instances" }

func (names) counters() string { return "hookonce:counters" }

// claim is the name of a key's claim: idem:<source>:<key>. A full key of more
// than 255 bytes has its message id's short form there; the value then holds
// the key itself.
func (names) claim(k hookonce.Key) string {
	id := k.ID
	if shortened(k) {
		short := k.MessageID()
		var ok bool
		if id, ok = strings.CutPrefix(short, k.Source+"/"); !ok {
			id = short[strings.LastIndexByte(short, '~'):] // a source name that fills the prefix
		}
	}
	return "idem:" + sourcePart.Replace(k.Source) + ":" + id
}

// sourcePart keeps source and key from running together.
var sourcePart = strings.NewReplacer("%", "%25", ":", "%3A")

// shortened says that the name of a claim does not show the whole key.
func shortened(k hookonce.Key) bool { return len(k.String()) > hookonce.MaxMessageID }
