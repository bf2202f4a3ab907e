package provider

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/jsonpath"
)

func whatsapp() Preset {
	return Preset{
		Name: "whatsapp", Title: "WhatsApp Cloud API (Meta)", Confidence: "high",
		Docs:     "https://developers.facebook.com/docs/whatsapp/cloud-api/guides/set-up-webhooks",
		Verifies: "X-Hub-Signature-256: sha256=… (HMAC-SHA256 of the body as received, hex)",
		Secrets:  "the app secret of the Meta app; verify: { token: … } is what you type in as verify token",
		Trap: "One wamid comes as sent, delivered, read and failed: as a key it loses all but the first. entry[].id is your account, not an event. " +
			"A redelivered batch may be composed differently. Meta signs the escaped form (\\u00e9): never parse and write the body again first.",
		Takes:    []string{"token"},
		Verifier: bodyHMAC("X-Hub-Signature-256", "hex", "sha256="),
		Keys: []string{
			"json:{context:metadata.phone_number_id}:{id}:{status}", // statuses
			"json:{context:metadata.phone_number_id}:{id}",          // messages
			"json:::{id}:{status}", "json:::{id}",                   // no phone number
			"body", // other fields have no id
		},
		BodyWindow: 24 * time.Hour, // most redeliveries; the state of a template may come back later
		Types:      []string{"json:{context:item}.{type}", "json:{context:item}.{status}", "context:item"},
		Created:    "json:timestamp", Entity: "json:id", Version: "json:timestamp",
		Split: splitWhatsApp, Batches: true,
		Probe:   metaChallenge,
		Methods: []string{http.MethodGet},
		// Anything but 200 is delivered again, for up to 7 days.
		Status: 200, ParkNoKey: true,
		MaxBody:   4 << 20,             // up to 3 MB are documented
		Retention: 45 * 24 * time.Hour, // delivered again for up to 7 days
		Sample: Sample{
			Source: "secrets: [ \"hookonce-test-secret\" ]\nverify: { token: \"hookonce-test-token\" }", Secret: "hookonce-test-secret",
			Body: `{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":{"messaging_product":"whatsapp",` +
				`"metadata":{"display_phone_number":"15550000001","phone_number_id":"100"},"contacts":[{"wa_id":"15550000002"}],` +
				`"messages":[{"id":"wamid.{id}","from":"15550000002","timestamp":"{seconds}","type":"text","text":{"body":"hi"}}]}}]}]}`,
			Sign: func(d *Draft) {
				d.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(d.hmac(sha256.New, string(d.Body))))
			},
		},
	}
}

// splitWhatsApp takes entries, changes, and messages and statuses apart. A
// change of another field is one item.
func splitWhatsApp(body []byte, limit int) ([]Item, bool, error) {
	root, ok := jsonpath.Root(body)
	entries, found := root.Get(path("entry"))
	if !ok || !found || entries.Kind != jsonpath.Array {
		return nil, false, fmt.Errorf("%w: no entry", ErrShape)
	}
	b := &batch{limit: limit}
	err := each(entries, func(entry jsonpath.Value) error {
		changes, _ := entry.Get(path("changes"))
		if changes.Kind != jsonpath.Array {
			return b.add(Item{Raw: entry.Raw, Context: metaContext(root, entry, jsonpath.Value{}, "entry")})
		}
		return each(changes, func(change jsonpath.Value) error { return b.change(root, entry, change) })
	})
	return b.items, true, err
}

func (b *batch) change(root, entry, change jsonpath.Value) error {
	value, _ := change.Get(path("value"))
	lists := 0
	for _, name := range []string{"messages", "statuses"} {
		list, _ := value.Get(path(name))
		if list.Kind != jsonpath.Array {
			continue
		}
		lists++
		context := metaContext(root, entry, change, name)
		add := func(item jsonpath.Value) error { return b.add(Item{Raw: item.Raw, Context: context, Named: true}) }
		if err := each(list, add); err != nil {
			return err
		}
	}
	if lists > 0 {
		return nil
	}
	field := textIn(change.Raw, "field")
	if field == "" {
		field = "change"
	}
	return b.add(Item{Raw: change.Raw, Context: metaContext(root, entry, change, field)})
}

// metaContext is what the parents say; item is the name of the list.
func metaContext(root, entry, change jsonpath.Value, item string) []byte {
	var o object
	o.text("item", item)
	o.from(root, "object")
	if id, ok := entry.Get(path("id")); ok {
		o.raw("entry_id", id.Raw)
	}
	o.from(change, "field")
	if value, ok := change.Get(path("value")); ok {
		o.from(value, "messaging_product", "metadata", "contacts")
	}
	return o.bytes()
}

// metaChallenge answers the GET that Meta sends when the URL is registered.
func metaChallenge(r *Request, s Settings) (Reply, bool) {
	if r.Method != http.MethodGet {
		return Reply{}, false
	}
	_, query, _ := strings.Cut(r.Target, "?")
	values, err := url.ParseQuery(query)
	challenge := values.Get("hub.challenge")
	token := sha256.Sum256([]byte(values.Get("hub.verify_token")))
	want := sha256.Sum256([]byte(s.Token))
	if err != nil || s.Token == "" || values.Get("hub.mode") != "subscribe" || challenge == "" || len(challenge) > 256 ||
		subtle.ConstantTimeCompare(token[:], want[:]) != 1 {
		return Reply{Answer: hookonce.Answer{Status: http.StatusForbidden}}, true
	}
	return Reply{Answer: hookonce.Answer{Status: http.StatusOK, Body: challenge}, ContentType: "text/plain; charset=utf-8"}, true
}
