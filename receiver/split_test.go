package receiver_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/receiver"
)

// batching is a store that claims many at once, as the real ones do.
type batching struct {
	*fakeStore
	calls int
	fail  func(call int, claims []hookonce.Claim, out []hookonce.Claimed) error
}

func (s *batching) Claim(_ context.Context, claims []hookonce.Claim) ([]hookonce.Claimed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	out := make([]hookonce.Claimed, len(claims))
	for i, c := range claims {
		s.claims = append(s.claims, c)
		out[i] = s.claim(c)
	}
	if s.fail != nil {
		if err := s.fail(s.calls, claims, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

var whatsappSource = receiver.Source{Name: "wa", Provider: "whatsapp", Secrets: []string{"app_secret"}, Verify: receiver.Verify{Token: "meta"}}

func signHub(secret, body string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(m.Sum(nil))
}

// meta wraps messages and statuses (JSON arrays, "" for none).
func meta(messages, statuses string) string {
	value := `"metadata":{"phone_number_id":"100"}`
	if messages != "" {
		value += `,"messages":` + messages
	}
	if statuses != "" {
		value += `,"statuses":` + statuses
	}
	return `{"object":"whatsapp_business_account","entry":[{"id":"waba","changes":[{"field":"messages","value":{` + value + `}}]}]}`
}

func (b *bench) wa(body string) *httptest.ResponseRecorder {
	return b.post("/hooks/wa", body, "X-Hub-Signature-256", signHub("app_secret", body))
}

func wantItems(t *testing.T, w *httptest.ResponseRecorder, want string, replayed bool) {
	t.Helper()
	wantStatus(t, w, 200)
	if got := w.Header().Get("Hookonce-Items"); got != want || (w.Header().Get("Idempotent-Replayed") != "") != replayed || w.Header().Get("Hookonce-Key") != "" {
		t.Errorf("%v, want items %s, replayed %v", w.Header(), want, replayed)
	}
}

func offeredKeys(b *bench) []string {
	var keys []string
	for _, e := range b.broker.offered {
		keys = append(keys, e.Event.Key.ID)
	}
	return keys
}

const (
	sentAndDelivered = `[{"id":"wamid.1","status":"sent","timestamp":"1"},{"id":"wamid.1","status":"delivered","timestamp":"2"}]`
	thenRead         = `[{"id":"wamid.1","status":"sent","timestamp":"1"},{"id":"wamid.1","status":"delivered","timestamp":"2"},{"id":"wamid.1","status":"read","timestamp":"3"}]`
)

// TestB10: a batch is claimed item by item.
func TestB10(t *testing.T) {
	for _, batches := range []bool{true, false} {
		store := &fakeStore{first: map[string]hookonce.Claim{}}
		b := newBenchWith(t, func(c *receiver.Config) {
			c.Store = store
			if batches {
				c.Store = &batching{fakeStore: store}
			}
		}, whatsappSource)
		// 1. Three items are three messages, in their order.
		wantItems(t, b.wa(meta(`[{"id":"wamid.9","type":"text"}]`, sentAndDelivered)), "new=3, duplicate=0, filtered=0, parked=0", false)
		if d := cmp.Diff([]string{"100:wamid.9", "100:wamid.1:sent", "100:wamid.1:delivered"}, offeredKeys(b)); d != "" {
			t.Error(d)
		}
		e := b.broker.offered[1].Event
		if string(e.Body) != `{"id":"wamid.1","status":"sent","timestamp":"1"}` || e.Type != "statuses.sent" {
			t.Errorf("event of type %s with body %s", e.Type, e.Body)
		}
		want := `{"item":"statuses","object":"whatsapp_business_account","entry_id":"waba","field":"messages","metadata":{"phone_number_id":"100"}}`
		if string(e.Context) != want {
			t.Errorf("context %s", e.Context)
		}
		// 2. A batch with old and new items publishes the new one alone.
		wantItems(t, b.wa(meta("", thenRead)), "new=1, duplicate=2, filtered=0, parked=0", false)
		// All known: as the first time.
		wantItems(t, b.wa(meta("", thenRead)), "new=0, duplicate=3, filtered=0, parked=0", true)
		// 3. An item without an id is parked and does not concern the other.
		wantItems(t, b.wa(meta("", `[{"status":"sent"},{"id":"wamid.2","status":"sent","timestamp":"4"}]`)), "new=1, duplicate=0, filtered=0, parked=1", false)
		parked := b.broker.offered[len(b.broker.offered)-2].Event
		if parked.Parked != "no key" || !strings.HasPrefix(parked.Key.ID, "!") || string(parked.Body) != `{"status":"sent"}` {
			t.Errorf("parked event %+v", parked)
		}
		wantItems(t, b.wa(meta("", `[{"status":"sent"}]`)), "new=0, duplicate=1, filtered=0, parked=0", true)
		// A key that one request repeats is one event.
		wantItems(t, b.wa(meta(`[{"id":"wamid.7"},{"id":"wamid.7"}]`, "")), "new=1, duplicate=1, filtered=0, parked=0", false)
		wantItems(t, b.wa(`{"object":"x","entry":[]}`), "new=0, duplicate=0, filtered=0, parked=0", false)
		if len(b.broker.offered) != 7 {
			t.Errorf("%d events: %v", len(b.broker.offered), offeredKeys(b))
		}
		if n := b.count(t, "wa", "accepted"); n != 6 {
			t.Errorf("%v accepted", n)
		}
	}
}

// TestItemsAreFoundAgain: what the store claimed before it failed is not lost
// and not repeated.
func TestItemsAreFoundAgain(t *testing.T) {
	store := &batching{fakeStore: &fakeStore{first: map[string]hookonce.Claim{}}}
	b := newBenchWith(t, func(c *receiver.Config) { c.Store = store }, with(whatsappSource, func(s *receiver.Source) { s.OnStoreDown = "reject" }))
	three := meta(`[{"id":"a"},{"id":"b"},{"id":"c"}]`, "")

	// The claim is made and its answer lost: it is asked for again, under the same tokens.
	store.fail = func(call int, _ []hookonce.Claim, _ []hookonce.Claimed) error {
		if call == 1 {
			return hookonce.ErrUnknown
		}
		return nil
	}
	wantItems(t, b.wa(three), "new=3, duplicate=0, filtered=0, parked=0", false)

	// One item's state stays unknown: 503. The others stay claimed and go on.
	store.fail = func(_ int, claims []hookonce.Claim, out []hookonce.Claimed) error {
		for i, c := range claims {
			if c.Event.Key.ID == "100:e" {
				delete(store.first, c.Event.Key.String())
				out[i] = hookonce.Claimed{Err: hookonce.ErrUnknown}
			}
		}
		return nil
	}
	more := meta(`[{"id":"d"},{"id":"e"},{"id":"f"}]`, "")
	wantStatus(t, b.wa(more), 503)
	if d := cmp.Diff([]string{"100:a", "100:b", "100:c", "100:d", "100:f"}, offeredKeys(b)); d != "" {
		t.Error(d)
	}
	store.fail = nil
	wantItems(t, b.wa(more), "new=1, duplicate=2, filtered=0, parked=0", false)

	// The store refuses one item's data: that one is parked.
	store.fail = func(_ int, claims []hookonce.Claim, out []hookonce.Claimed) error {
		for i, c := range claims {
			if c.Event.Key.ID == "100:h" {
				delete(store.first, c.Event.Key.String())
				out[i] = hookonce.Claimed{Err: hookonce.ErrInvalid}
			}
		}
		return nil
	}
	wantItems(t, b.wa(meta(`[{"id":"g"},{"id":"h"}]`, "")), "new=1, duplicate=0, filtered=0, parked=1", false)

	store.fail = func(_ int, _ []hookonce.Claim, out []hookonce.Claimed) error {
		out[0] = hookonce.Claimed{Err: hookonce.ErrOutboxFull}
		return nil
	}
	wantStatus(t, b.wa(meta(`[{"id":"i"}]`, "")), 503)
}

// TestItemsWithoutStore: with the store down every item is published, or the
// request is repeated.
func TestItemsWithoutStore(t *testing.T) {
	store := &batching{fakeStore: &fakeStore{first: map[string]hookonce.Claim{}}}
	store.fail = func(int, []hookonce.Claim, []hookonce.Claimed) error { return errDown }
	b := newBenchWith(t, func(c *receiver.Config) { c.Store = store }, whatsappSource)
	wantItems(t, b.wa(meta(`[{"id":"a"},{"id":"b"}]`, "")), "new=2, duplicate=0, filtered=0, parked=0", false)
	if len(b.broker.published) != 2 {
		t.Errorf("%d published", len(b.broker.published))
	}
	b.broker.err = errors.New("no broker either")
	wantStatus(t, b.wa(meta(`[{"id":"c"}]`, "")), 503)
}

// TestItemsConfirmed: under ack: confirm a batch is answered when all of it is
// confirmed; what was is found again.
func TestItemsConfirmed(t *testing.T) {
	b := newBench(t, with(whatsappSource, func(s *receiver.Source) { s.Ack = "confirm" }))
	b.broker.err = errDown
	wantStatus(t, b.wa(meta(`[{"id":"a"},{"id":"b"}]`, "")), 503)
	if len(b.broker.offered) != 2 {
		t.Errorf("the relay got %d of what was not confirmed", len(b.broker.offered))
	}
	b.broker.err = nil
	wantItems(t, b.wa(meta(`[{"id":"a"},{"id":"b"},{"id":"c"}]`, "")), "new=1, duplicate=2, filtered=0, parked=0", false)
	if len(b.broker.confirmed) != 1 || len(b.broker.published) != 2 {
		t.Errorf("%d confirmed, %d published", len(b.broker.confirmed), len(b.broker.published))
	}
}

func TestItemLimits(t *testing.T) {
	b := newBench(t, with(whatsappSource, func(s *receiver.Source) { s.MaxItems = 2; s.Ignore = []string{"statuses.sent"} }))
	wantStatus(t, b.wa(meta(`[{"id":"a"},{"id":"b"},{"id":"c"}]`, "")), 413)
	if b.store.calls() != 0 {
		t.Error("a batch that is too large reached the store")
	}
	wantItems(t, b.wa(meta("", sentAndDelivered)), "new=1, duplicate=0, filtered=1, parked=0", false)

	// What the parents say is cut to 8 KiB, and the key does not change by it.
	huge := strings.Replace(meta(`[{"id":"d"}]`, ""), `"metadata"`, `"contacts":["`+strings.Repeat("x", 9000)+`"],"metadata"`, 1)
	wantItems(t, b.wa(huge), "new=1, duplicate=0, filtered=0, parked=0", false)
	if e := b.store.last(t).Event; len(e.Context) > 8<<10 || !strings.Contains(string(e.Context), `"phone_number_id":"100"`) || e.Key.ID != "100:d" {
		t.Errorf("%s with a context of %d bytes: %.200s", e.Key, len(e.Context), e.Context)
	}
	vast := strings.Replace(meta(`[{"id":"e"}]`, ""), `"phone_number_id"`, `"x":"`+strings.Repeat("x", 9000)+`","phone_number_id"`, 1)
	wantItems(t, b.wa(vast), "new=1, duplicate=0, filtered=0, parked=0", false)
	if e := b.store.last(t).Event; len(e.Context) > 8<<10 || e.Key.ID != "100:e" {
		t.Errorf("%s with a context of %d bytes", e.Key, len(e.Context))
	}

	// What Meta would not send is parked whole, as Meta gives up on nothing else.
	for _, body := range []string{"null", "[]", `"x"`, "42", "{}", `{"entry":7}`, `{"entry":"x"}`} {
		w := b.wa(body)
		wantStatus(t, w, 200)
		if e := b.store.last(t).Event; e.Parked != "no key" || string(e.Body) != body {
			t.Errorf("%s: %+v", body, e)
		}
	}
	wantStatus(t, b.wa(`{"entry":[],"entry":[]}`), 400)
	for i, body := range []string{`{"entry":[7]}`, `{"entry":[{"changes":[7,null]}]}`, `{"entry":[{"changes":[{"field":"account_update","value":{"event":"X"}}]}]}`} {
		if w := b.wa(body); w.Code != 200 {
			t.Errorf("%d: status %d", i, w.Code)
		}
	}
	if c := b.store.last(t); c.Event.Type != "account_update" || !strings.HasPrefix(c.Event.Key.ID, "sha256:") || c.TTL != 24*time.Hour {
		t.Errorf("a field without ids: %s of type %s for %s", c.Event.Key, c.Event.Type, c.TTL)
	}
}

// adyenItem is a signed item; spoil changes what is signed.
func adyenItem(psp, event string, spoil bool) string {
	key, _ := hex.DecodeString("DFB1EB5485895CFA84146406857104ABB4CBCABDC8AAF103A624C8F6A3EAAB00")
	m := hmac.New(sha256.New, key)
	m.Write([]byte(psp + "::Shop:o-1:1000:EUR:" + event + ":true"))
	sig := m.Sum(nil)
	if spoil {
		sig[0]++
	}
	return fmt.Sprintf(`{"NotificationRequestItem":{"pspReference":%q,"merchantAccountCode":"Shop","merchantReference":"o-1",`+
		`"amount":{"value":1000,"currency":"EUR"},"eventCode":%q,"success":"true","eventDate":"2026-12-01","additionalData":{"hmacSignature":%q}}}`,
		psp, event, b64(sig))
}

// TestAdyenItems: a good item is accepted beside a forged one; the request is
// refused, so that Adyen sends it again and nothing is lost.
func TestAdyenItems(t *testing.T) {
	b := newBench(t, receiver.Source{Name: "ad", Provider: "adyen", Secrets: []string{"DFB1EB5485895CFA84146406857104ABB4CBCABDC8AAF103A624C8F6A3EAAB00"}})
	batch := func(items ...string) string {
		return `{"live":"true","notificationItems":[` + strings.Join(items, ",") + `]}`
	}
	w := b.post("/hooks/ad", batch(adyenItem("p1", "AUTHORISATION", false), adyenItem("p1", "REFUND", false)))
	wantItems(t, w, "new=2, duplicate=0, filtered=0, parked=0", false)
	if w.Body.String() != "[accepted]" {
		t.Errorf("body %q", w.Body)
	}
	wantStatus(t, b.post("/hooks/ad", batch(adyenItem("p2", "AUTHORISATION", true), adyenItem("p3", "AUTHORISATION", false))), 401)
	if d := cmp.Diff([]string{"Shop:p1:AUTHORISATION:true", "Shop:p1:REFUND:true", "Shop:p3:AUTHORISATION:true"}, offeredKeys(b)); d != "" {
		t.Error(d)
	}
	calls := b.store.calls()
	wantStatus(t, b.post("/hooks/ad", batch(adyenItem("p4", "AUTHORISATION", true))), 401)
	wantStatus(t, b.post("/hooks/ad", batch()), 401)
	wantStatus(t, b.post("/hooks/ad", `{"notificationItems":{}}`), 401)
	if b.store.calls() != calls {
		t.Error("a forged item reached the store")
	}
}

// TestPix: a refund repeats its payment's id and is another event; so is each
// payment of a list.
func TestPix(t *testing.T) {
	b := newBench(t, receiver.Source{Name: "pix", Provider: "efi", Secrets: []string{"xyz"}})
	post := func(body string) *httptest.ResponseRecorder { return b.post("/hooks/pix?hmac=xyz&ignorar=", body) }
	wantItems(t, post(`{"pix":[{"endToEndId":"E1","txid":"t","valor":"10.00"},{"endToEndId":"E2","txid":"t","valor":"5.00"}]}`), "new=2, duplicate=0, filtered=0, parked=0", false)
	refund := `{"pix":[{"endToEndId":"E1","txid":"t","valor":"10.00","devolucoes":[{"id":"D1","rtrId":"R","valor":"1.00","status":"%s"}]}]}`
	wantItems(t, post(fmt.Sprintf(refund, "EM_PROCESSAMENTO")), "new=1, duplicate=0, filtered=0, parked=0", false)
	wantItems(t, post(fmt.Sprintf(refund, "DEVOLVIDO")), "new=1, duplicate=0, filtered=0, parked=0", false)
	wantItems(t, post(fmt.Sprintf(refund, "DEVOLVIDO")), "new=0, duplicate=1, filtered=0, parked=0", true)
	e := b.store.last(t).Event
	if e.Type != "pix.devolucao" || !strings.Contains(string(e.Context), `"endToEndId":"E1"`) || e.Key.ID != "E1:refund:D1:DEVOLVIDO" {
		t.Errorf("refund %s of type %s, context %s", e.Key, e.Type, e.Context)
	}
	wantStatus(t, b.post("/hooks/pix?hmac=other", `{"pix":[]}`), 401)
	wantStatus(t, b.post("/hooks/pix", `{"pix":[]}`), 401)
	wantStatus(t, b.post("/hooks/pix?hmac=xyz&hmac=xyz", `{"pix":[]}`), 401)
	for _, probe := range []string{"", "{}", `{"evento":"teste_webhook","data_criacao":"2026"}`} {
		wantStatus(t, post(probe), 200)
	}
	if n := b.count(t, "pix", "handshake"); n != 3 {
		t.Errorf("%v handshakes", n)
	}
}
