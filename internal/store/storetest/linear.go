package storetest

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/hookonce/hookonce"
)

// attempt is one claim as the checker sees it; times are ns since the start.
type attempt struct {
	key        string
	token      string
	from, till int64
	ttl        int64
}

// seen is what an attempt was told: New, whose duplicate it is, or nothing: its
// answer was lost, and it may be carried out at any later time, or never.
type seen struct {
	outcome hookonce.Outcome
	first   string // the answer of the first delivery, which names its token
}

// held is the state of one key: who holds it, and between which times that
// ends. The holder's claim was made between the call and the return.
type held struct {
	token       string
	early, late int64
}

const (
	never = math.MaxInt64 / 2
	// slack is how exactly a store knows the time.
	slack = int64(3 * time.Millisecond)
)

// taken is the key's state when the attempt takes it from h.
func (a attempt) taken(h held) held {
	late := int64(never)
	if a.till < never {
		late = a.till + a.ttl + slack
	}
	return held{a.token, max(a.from, h.early) + a.ttl - slack, late}
}

// step says in which states a key may be after an attempt; none: it cannot have
// been answered like that.
func step(h held, a attempt, out seen) []any {
	var next []any
	free := h.token == "" || a.till >= h.early // it may have been, within the attempt
	held := h.token != "" && a.from < h.late
	switch out.outcome {
	case hookonce.New:
		if free {
			next = append(next, a.taken(h))
		}
		if held && h.token == a.token {
			next = append(next, h)
		}
	case hookonce.Duplicate:
		if held && h.token != a.token && out.first == h.token {
			next = append(next, h)
		}
	default:
		next = append(next, h)
		if free {
			next = append(next, a.taken(h))
		}
	}
	return next
}

// claimModel is the claim of one key.
var claimModel = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(attempt).key
			byKey[key] = append(byKey[key], op)
		}
		var parts [][]porcupine.Operation
		for _, ops := range byKey {
			parts = append(parts, ops)
		}
		return parts
	},
	Init: func() []any { return []any{held{}} },
	Step: func(state, input, output any) []any {
		return step(state.(held), input.(attempt), output.(seen))
	},
}

// recorder is the history of many clients' claims.
type recorder struct {
	start   time.Time
	mu      sync.Mutex
	history []porcupine.Operation
}

// claim claims once, and notes when and what came of it.
func (r *recorder) claim(t *testing.T, s Store, client int, c hookonce.Claim) hookonce.Outcome {
	a := attempt{key: c.Event.Key.ID, token: c.Answer.Body, ttl: int64(c.TTL), from: int64(time.Since(r.start))}
	got, err := s.ClaimOne(t.Context(), c)
	a.till = int64(time.Since(r.start))
	switch {
	case errors.Is(err, hookonce.ErrUnknown):
		a.till, got = never, hookonce.Claimed{}
	case err != nil:
		t.Errorf("ClaimOne: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, porcupine.Operation{
		ClientId: client, Input: a, Call: a.from, Output: seen{got.Outcome, got.First.Body}, Return: a.till,
	})
	return got.Outcome
}

func (r *recorder) check(t *testing.T) {
	t.Helper()
	switch porcupine.CheckOperationsTimeout(claimModel.ToModel(), r.history, 20*time.Second) {
	case porcupine.Illegal:
		t.Errorf("no order of the %d claims explains their answers", len(r.history))
	case porcupine.Unknown:
		t.Errorf("the order of %d claims could not be checked in time", len(r.history))
	}
}

// tokenClaim is a claim whose answer names its token.
func tokenClaim(key string, token hookonce.Token, ttl time.Duration) hookonce.Claim {
	c := claim(key)
	c.Token, c.Answer.Body, c.TTL = token, fmt.Sprintf("%x", token), ttl
	return c
}

// linearizable lets clients claim few keys at once, now and then again with
// the same token, and checks that some order of the claims explains all answers.
func linearizable(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	const clients, rounds, keyCount = 16, 40, 40
	r := recorder{start: time.Now()}
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			var token hookonce.Token
			for i := range rounds {
				if i%3 != 2 { // each third claim repeats the one before
					token = hookonce.NewToken()
				}
				r.claim(t, s, client, tokenClaim(fmt.Sprint("k", (i-i%3/2)*7%keyCount), token, time.Hour))
			}
		})
	}
	wg.Wait()
	r.check(t)
}

// linearizableWithExpiry: the same, while claims expire; and where the harness
// can lose answers, some are lost, and repeated with their token.
func linearizableWithExpiry(t *testing.T, h Harness) {
	s, lose := h.lossy(t)
	const clients, rounds, keyCount, ttl = 10, 40, 20, 100 * time.Millisecond
	r := recorder{start: time.Now()}
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for i := range rounds {
				c := tokenClaim(fmt.Sprint("k", (i*7+client)%keyCount), hookonce.NewToken(), ttl)
				for r.claim(t, s, client, c) == 0 && !t.Failed() {
					lose(false)
				}
				if client == 0 && i%10 == 5 {
					lose(true)
				}
			}
		})
	}
	wg.Wait()
	r.check(t)
}
