package redis

import (
	"errors"
	"strconv"

	"github.com/hookonce/hookonce"
)

// ClaimName is the name of a key's claim, alone or in a cluster.
func ClaimName(k hookonce.Key, cluster bool) string {
	n := names{shards: 1}
	if cluster {
		n.shards = Shards
	}
	return n.claim(k)
}

// IsTooFew says that a claim missed a replica.
func IsTooFew(err error) bool { return errors.Is(err, errTooFew) }

// ClaimOfShard gives a claim of source "shard" a key of a cluster's shard.
func ClaimOfShard(c hookonce.Claim, shard int) hookonce.Claim {
	n := names{shards: Shards}
	for i := 0; ; i++ {
		c.Event.Key = hookonce.Key{Source: "shard", ID: strconv.Itoa(i)}
		if n.shard(c.Event.Key) == shard {
			return c
		}
	}
}
