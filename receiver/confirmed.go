package receiver

import (
	"sync"

	"github.com/hookonce/hookonce"
)

// confirmedHalf is how many keys are remembered at least; twice as many at
// most, in about 5 MB.
const confirmedHalf = 50_000

// confirmed remembers the keys whose event the broker has confirmed to this
// process: a duplicate of one publishes nothing. What is not in it, because it
// was long ago or another process's, is published once more, which is safe.
type confirmed struct {
	mu          sync.Mutex
	young, aged map[[16]byte]struct{}
}

func (c *confirmed) add(k hookonce.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young == nil || len(c.young) >= confirmedHalf {
		c.young, c.aged = make(map[[16]byte]struct{}), c.young
	}
	c.young[k.Digest()] = struct{}{}
}

func (c *confirmed) has(k hookonce.Key) bool {
	digest := k.Digest()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.young[digest]; ok {
		return true
	}
	_, ok := c.aged[digest]
	return ok
}
