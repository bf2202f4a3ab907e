package receiver

import (
	"strconv"
	"testing"

	"github.com/hookonce/hookonce"
)

// TestConfirmedIsBounded: the newest keys are remembered, the oldest forgotten.
func TestConfirmedIsBounded(t *testing.T) {
	var c confirmed
	key := func(i int) hookonce.Key { return hookonce.Key{Source: "orders", ID: strconv.Itoa(i)} }
	const n = 3 * confirmedHalf
	for i := range n {
		c.add(key(i))
	}
	if kept := len(c.young) + len(c.aged); kept > 2*confirmedHalf {
		t.Errorf("%d keys are kept", kept)
	}
	if !c.has(key(n-1)) || !c.has(key(n-confirmedHalf)) || c.has(key(0)) {
		t.Error("the wrong ones are remembered")
	}
}
