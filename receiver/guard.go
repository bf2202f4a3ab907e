package receiver

import (
	"fmt"

	"github.com/hookonce/hookonce"
)

// guard claims, beside the key, what is signed: where the key is not, who has
// seen a delivery could send it again under another key. It is found again as
// long as the guard's window, at least. (On a Redis Cluster it lies in another
// shard and is not kept: there the signature's own time limit is all there is.)
func (d *delivery) guard() {
	g, c := d.source.guard, &d.claim
	if g.Recipe == "" || d.item {
		return
	}
	value := hexSum(d.body)
	if g.Recipe != "body" {
		text, ok := d.source.guardRecipe.Eval(&d.input)
		if !ok {
			return
		}
		value = hexSum([]byte(text))
	}
	ids := []string{"!guard:" + value}
	if g.Window > 0 {
		// This span of time and the one before: a copy of the next one finds it.
		span := d.now.UnixNano() / int64(g.Window)
		ids = []string{fmt.Sprintf("!guard:%d:%s", span, value), fmt.Sprintf("!guard:%d:%s", span-1, value)}
	}
	for _, id := range ids {
		c.Previous = append(c.Previous, hookonce.Key{Source: d.source.name, ID: id})
		d.guards++
	}
}

// forged tells whether a duplicate is none: another event behind a signature
// that was taken before.
func (d *delivery) forged(claimed hookonce.Claimed) bool {
	if !d.source.guard.Reject || d.guards == 0 || claimed.Key == d.claim.Event.Key || claimed.Key.ID == "" {
		return false
	}
	for _, own := range d.claim.Previous[:len(d.claim.Previous)-d.guards] {
		if own == claimed.Key {
			return false
		}
	}
	return claimed.Fingerprint != [16]byte{} && claimed.Fingerprint != d.claim.Fingerprint
}
