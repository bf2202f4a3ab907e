package redis

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce"
)

// A stream's ids are <ms>-<seq>. An entry's id has the milliseconds in Hi and
// seq * shards + shard in Lo: without a cluster that is the stream's own id, in
// a cluster the low six bits of Lo tell the shard, and ids of different shards
// compare by their time first. Ids of one shard ascend in the order of its
// claims; between shards the nodes' clocks decide, so that an entry may come up
// behind one that was read before. (The relay counts its own claims, and reads
// again from the start.)

// entryID reads a stream id of a shard.
func (n names) entryID(shard int, s string) (hookonce.EntryID, error) {
	ms, seq, ok := strings.Cut(s, "-")
	hi, err1 := strconv.ParseUint(ms, 10, 64)
	lo, err2 := strconv.ParseUint(seq, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return hookonce.EntryID{}, fmt.Errorf("%q is no stream id", s)
	}
	return hookonce.EntryID{Hi: hi, Lo: lo*uint64(n.shards) + uint64(shard)}, nil
}

// streamID is the shard of an entry and its id there.
func (n names) streamID(id hookonce.EntryID) (shard int, s string) {
	count := uint64(n.shards)
	return int(id.Lo % count), strconv.FormatUint(id.Hi, 10) + "-" + strconv.FormatUint(id.Lo/count, 10)
}

// following is the least id of a shard that is above id, as the stream writes
// it. (Redis before 6.2 has no open ranges.)
func (n names) following(shard int, id hookonce.EntryID) string {
	ms, seq := id.Hi, id.Lo/uint64(n.shards)
	if uint64(shard) <= id.Lo%uint64(n.shards) {
		if seq++; seq == 0 {
			ms++
		}
	}
	return strconv.FormatUint(ms, 10) + "-" + strconv.FormatUint(seq, 10)
}

func less(a, b hookonce.EntryID) bool { return a.Hi < b.Hi || a.Hi == b.Hi && a.Lo < b.Lo }
