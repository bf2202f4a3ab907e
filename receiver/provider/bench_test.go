package provider_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/jsonpath"
	"github.com/hookonce/hookonce/internal/recipe"
	"github.com/hookonce/hookonce/receiver/provider"
)

// stripeEvent is a signed event of 1.2 KB.
func stripeEvent() *provider.Request {
	const frame = `{"id":"evt_1PqRsTuVwXyZ","object":"event","api_version":"2024-06-20","created":1700000000,"type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","amount":1000,"description":"` + `"}}}`
	body := strings.Replace(frame, `"description":"`, `"description":"`+strings.Repeat("x", 1200-len(frame)), 1)
	m := hmac.New(sha256.New, []byte("whsec_bench"))
	fmt.Fprintf(m, "1700000000.%s", body)
	return &provider.Request{
		Body: []byte(body), Now: at, Header: http.Header{"Stripe-Signature": {fmt.Sprintf("t=1700000000,v1=%x", m.Sum(nil))}},
	}
}

// verifyAndKey is what a Stripe delivery costs before the claim.
func verifyAndKey(t testing.TB) func() string {
	r := stripeEvent()
	v := verifierOf(t, "stripe", "whsec_bench")
	key, err := recipe.Parse("json:id")
	if err != nil {
		t.Fatal(err)
	}
	return func() string {
		if err := v.Verify(r); err != nil {
			t.Fatal(err)
		}
		if err := jsonpath.ValidUnique(r.Body); err != nil {
			t.Fatal(err)
		}
		id, _ := key.Eval(&recipe.Input{Header: r.Header, JSON: r.Body})
		return id
	}
}

// BenchmarkStripe verifies an event of 1.2 KB, checks that its JSON has one
// reading, and takes its key.
func BenchmarkStripe(b *testing.B) {
	once := verifyAndKey(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(stripeEvent().Body)))
	for b.Loop() {
		once()
	}
}

// TestStripeCostsFewAllocations: no time, which a loaded machine makes of rubber.
func TestStripeCostsFewAllocations(t *testing.T) {
	once := verifyAndKey(t)
	if id := once(); id != "evt_1PqRsTuVwXyZ" {
		t.Fatal(id)
	}
	if n := testing.AllocsPerRun(200, func() { once() }); n > 12 {
		t.Errorf("%v allocations, at most 12", n)
	}
}
