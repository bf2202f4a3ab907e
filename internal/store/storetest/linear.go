package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/hookonce/hookonce"
)

// attempt is one claim as the checker sees it.
type attempt struct {
	key   string
	token hookonce.Token
}

// seen is what an attempt was told: New, or whose duplicate it is.
type seen struct {
	outcome hookonce.Outcome
	first   string // the answer of the first delivery, which names its token
}

// claimModel is the claim of one key: the first token takes it for ever.
var claimModel = porcupine.Model{
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
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		holder, token, out := state.(string), fmt.Sprintf("%x", input.(attempt).token), output.(seen)
		switch {
		case holder == "":
			return out.outcome == hookonce.New, token
		case holder == token:
			return out.outcome == hookonce.New, holder
		}
		return out.outcome == hookonce.Duplicate && out.first == holder, holder
	},
}

// linearizable lets clients claim few keys at once, now and then again with
// the same token, and checks that some order of the claims explains all answers.
func linearizable(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	const clients, rounds, keyCount = 16, 40, 40
	var mu sync.Mutex
	var history []porcupine.Operation
	var wg sync.WaitGroup
	start := time.Now()
	for client := range clients {
		wg.Go(func() {
			var token hookonce.Token
			for i := range rounds {
				if i%3 != 2 { // each third claim repeats the one before
					token = hookonce.NewToken()
				}
				c := claim(fmt.Sprint("k", (i-i%3/2)*7%keyCount))
				c.Token, c.Answer.Body = token, fmt.Sprintf("%x", token)
				from := time.Since(start)
				got, err := s.ClaimOne(t.Context(), c)
				if err != nil {
					t.Errorf("ClaimOne: %v", err)
					return
				}
				mu.Lock()
				history = append(history, porcupine.Operation{
					ClientId: client, Input: attempt{c.Event.Key.ID, token}, Call: int64(from),
					Output: seen{got.Outcome, got.First.Body}, Return: int64(time.Since(start)),
				})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if !porcupine.CheckOperations(claimModel, history) {
		t.Errorf("no order of the %d claims explains their answers", len(history))
	}
}
