package redis_test

import (
	"errors"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/redis"
	"github.com/hookonce/hookonce/internal/testenv"
)

// guards are values that older guards have left, and what they mean.
var guards = []struct {
	value string
	known bool
	first hookonce.Answer // zero: the source's own answer
}{
	{"done", true, hookonce.Answer{}},
	{`{"status":"done"}`, true, hookonce.Answer{}},
	{`{"statusCode":201,"body":"thanks"}`, true, hookonce.Answer{Status: 201, Body: "thanks"}},
	{`{"status":200,"body":{"ok":true}}`, true, hookonce.Answer{Status: 200, Body: `{"ok":true}`}},
	{`{"status_code":204}`, true, hookonce.Answer{Status: 204}},
	{`{"statusCode":500,"body":"oops"}`, false, hookonce.Answer{}},
	{`{"status":"processing"}`, false, hookonce.Answer{}},
	{"processing", false, hookonce.Answer{}},
	{"1", false, hookonce.Answer{}},
	{"", false, hookonce.Answer{}},
	{"hk1 cut short", false, hookonce.Answer{}},
}

// testAdopt: what an older guard knows to be done is a duplicate, what it has
// begun is unknown, and what it does not know is new.
func testAdopt(t *testing.T, url string, c goredis.Cmdable, prefix string) {
	s := open(t, redis.Options{URL: url, Adopt: map[string]redis.Adopt{"orders": {Prefix: prefix, Final: []string{"done"}}}})
	for i, g := range guards {
		id := string(rune('a' + i))
		must(t, c.Set(t.Context(), prefix+id, g.value, 0).Err())
		claim := claimOf(id)
		claim.Fingerprint = [16]byte{1}
		got, err := s.ClaimOne(t.Context(), claim)
		switch {
		case !g.known:
			if !errors.Is(err, hookonce.ErrUnknown) {
				t.Errorf("%q: %v, %v; want unknown", g.value, got.Outcome, err)
			}
			continue
		case err != nil || got.Outcome != hookonce.Duplicate || got.Key != claim.Event.Key || got.Fingerprint != claim.Fingerprint:
			t.Errorf("%q: %+v, %v; want a duplicate", g.value, got, err)
		}
		want := g.first
		if want.Status == 0 {
			want = claim.Answer
		}
		if got.First != want {
			t.Errorf("%q was answered %+v, want %+v", g.value, got.First, want)
		}
		if left := c.Get(t.Context(), prefix+id).Val(); left != g.value {
			t.Errorf("%q became %q", g.value, left)
		}
	}
	mustClaim(t, s, claimOf("new"), hookonce.New)
	mustClaim(t, s, claimOf("new"), hookonce.Duplicate)
	if again := pending(t, s); len(again) != 1 {
		t.Errorf("%d entries", len(again))
	}
	// The older guard made other keys, which the source names as previous ones.
	must(t, c.Set(t.Context(), prefix+"old-7", "done", 0).Err())
	second := claimOf("new-7")
	second.Previous = []hookonce.Key{{Source: "orders", ID: "old-7"}}
	mustClaim(t, s, second, hookonce.Duplicate)
	// Another source has no guard.
	other := claimOf("a")
	other.Event.Key.Source = "payments"
	mustClaim(t, s, other, hookonce.New)
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"idem:orders:", "webhook:"} {
		t.Run(prefix, func(t *testing.T) {
			url := testenv.Redis(t)
			testAdopt(t, url, client(t, url), prefix)
		})
	}
}
