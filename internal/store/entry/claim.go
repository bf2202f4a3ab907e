package entry

import (
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
)

// MaxAnswer is the longest answer body that is kept with a claim, in bytes.
const MaxAnswer = 64 << 10

// Check says why a store must refuse the data of a claim; its errors wrap
// [hookonce.ErrInvalid].
func Check(c hookonce.Claim) error {
	if err := checkKey(c.Event.Key); err != nil {
		return err
	}
	if c.Lookup != nil {
		if err := checkKey(*c.Lookup); err != nil {
			return err
		}
	}
	for _, k := range c.Previous {
		if err := checkKey(k); err != nil {
			return err
		}
	}
	switch {
	case c.TTL < time.Millisecond:
		return fmt.Errorf("%w: a claim of %v is no claim", hookonce.ErrInvalid, c.TTL)
	case c.Answer.Status < 200 || c.Answer.Status > 299:
		return fmt.Errorf("%w: only success answers are kept, not %d", hookonce.ErrInvalid, c.Answer.Status)
	case len(c.Answer.Body) > MaxAnswer:
		return fmt.Errorf("%w: answer of %d bytes, at most %d are kept", hookonce.ErrInvalid, len(c.Answer.Body), MaxAnswer)
	}
	return nil
}

func checkKey(k hookonce.Key) error {
	switch {
	case k.Source == "" || strings.Contains(k.Source, "/"):
		return fmt.Errorf("%w: bad source name %q", hookonce.ErrInvalid, k.Source)
	case k.ID == "":
		return fmt.Errorf("%w: empty key", hookonce.ErrInvalid)
	case len(k.ID) > hookonce.MaxKey:
		return fmt.Errorf("%w: key of %d bytes, at most %d", hookonce.ErrInvalid, len(k.ID), hookonce.MaxKey)
	}
	return nil
}

// MarkRepeats makes a key that one caller's batch repeats New at most once: a
// later item of the batch is a duplicate of the first, even under the same
// token, for within one batch no answer was lost.
func MarkRepeats(claims []hookonce.Claim, out []hookonce.Claimed) {
	if len(claims) < 2 {
		return
	}
	taken := make(map[hookonce.Key]bool, len(claims))
	for i, c := range claims {
		if out[i].Outcome != hookonce.New {
			continue
		}
		repeats := taken[c.Claimed()]
		for _, k := range c.Previous {
			repeats = repeats || taken[k]
		}
		if repeats {
			out[i].Outcome, out[i].Entry = hookonce.Duplicate, hookonce.EntryID{}
			continue // it has claimed nothing
		}
		taken[c.Claimed()] = true
		for _, k := range c.Previous {
			taken[k] = true
		}
	}
}
