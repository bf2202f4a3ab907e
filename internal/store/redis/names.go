package redis

import (
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce"
)

// Shards is how many parts a Redis Cluster's claims and outboxes are divided
// into. It can never change: a claim would be looked for in another place.
const Shards = 64

// names builds every key name. They all come from here, so that the hash tags
// of Redis Cluster have one place: a cluster keeps names with the same tag on
// one node, where one script may touch them all.
type names struct {
	instance string
	shards   int // 1: no tags
}

// shard is where a key is claimed, and its event's outbox.
func (n names) shard(k hookonce.Key) int {
	if n.shards == 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(k.String()))
	return int(h.Sum32() % uint32(n.shards))
}

// tag is what comes between a name's first part and the rest.
func (n names) tag(shard int) string {
	if n.shards == 1 {
		return ""
	}
	return "{" + strconv.Itoa(shard) + "}:"
}

func (n names) outbox(shard int) string { return n.outboxOf(shard, n.instance) }

func (n names) outboxOf(shard int, instance string) string {
	return "hookonce:" + n.tag(shard) + "outbox:" + instance
}

func (n names) instances(shard int) string { return "hookonce:" + n.tag(shard) + "instances" }

func (n names) counters(shard int) string { return "hookonce:" + n.tag(shard) + "counters" }

// claim is the name of a key's claim: idem:<source>:<key>, in a cluster
// idem:{<shard>}:<source>:<key>. A full key of more than 255 bytes has its
// message id's short form there; the value then holds the key itself.
func (n names) claim(k hookonce.Key) string {
	id := k.ID
	if shortened(k) {
		short := k.MessageID()
		var ok bool
		if id, ok = strings.CutPrefix(short, k.Source+"/"); !ok {
			id = short[strings.LastIndexByte(short, '~'):] // a source name that fills the prefix
		}
	}
	return "idem:" + n.tag(n.shard(k)) + sourcePart.Replace(k.Source) + ":" + id
}

// sourcePart keeps source and key from running together.
var sourcePart = strings.NewReplacer("%", "%25", ":", "%3A")

// shortened says that the name of a claim does not show the whole key.
func shortened(k hookonce.Key) bool { return len(k.String()) > hookonce.MaxMessageID }
