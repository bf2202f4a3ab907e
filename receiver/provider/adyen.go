package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/jsonpath"
)

func adyen() Preset {
	return Preset{
		Name: "adyen", Title: "Adyen", Confidence: "high",
		Docs: "https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures",
		Verifies: "per item, additionalData.hmacSignature (HMAC-SHA256 over eight fields, base64); banking webhooks: the header HmacSignature " +
			"over the body",
		Secrets: "the HMAC key of the webhook, hexadecimal as Adyen shows it",
		Trap: "eventDate, reason and the place in the list are not signed and no part of the key; an AUTHORISATION may fail first and succeed " +
			"later under one pspReference, so success is part of it. When one item's signature is wrong, the others are accepted and the " +
			"request is answered 401, so that Adyen sends it again and nothing is lost.",
		Verifier: newAdyen,
		Keys:     []string{"json:{merchantAccountCode}:{pspReference}:{eventCode}:{success}", "json:{merchantAccountCode}:{pspReference}:{eventCode}:"},
		Types:    []string{"json:eventCode", "json:type"},
		Created:  "json:eventDate", Entity: "json:merchantReference",
		Split: splitAdyen, Batches: true,
		Status: 200, Body: "[accepted]",
		Retention: 45 * 24 * time.Hour, // delivered again for up to 30 days
		Sample: Sample{
			Source: `secrets: [ "` + adyenTestKey + `" ]`, Secret: adyenTestKey,
			Body: `{"live":"false","notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":"{signature}"},` +
				`"amount":{"currency":"EUR","value":1000},"eventCode":"AUTHORISATION","eventDate":"{time}","merchantAccountCode":"Hookonce",` +
				`"merchantReference":"order-1","pspReference":"{id}","success":"true"}}]}`,
			Sign: func(d *Draft) {
				key, _ := hex.DecodeString(d.Secret)
				m := hmac.New(sha256.New, key)
				m.Write([]byte(d.ID + "::Hookonce:order-1:1000:EUR:AUTHORISATION:true"))
				sig := base64.StdEncoding.EncodeToString(m.Sum(nil))
				d.Body = []byte(strings.Replace(string(d.Body), "{signature}", sig, 1))
			},
		},
	}
}

const adyenTestKey = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"

const adyenHeader = "Hmacsignature"

type adyenVerifier struct{ ring keyring }

func newAdyen(s Settings) (Verifier, error) {
	ring, err := newKeyring(s, hmacKeyFrom(sha256Hash, fromHex))
	return &adyenVerifier{ring}, err
}

func (v *adyenVerifier) Credentials() []string { return []string{adyenHeader} }

// Verify accepts a signed body, or a batch of which one item is genuine; a
// batch that is empty proves nothing.
func (v *adyenVerifier) Verify(r *Request) error {
	if len(r.Header[adyenHeader]) > 0 {
		text, err := single(r.Header, adyenHeader)
		if err != nil {
			return err
		}
		sig, err := fromBase64(text)
		if err != nil {
			return fmt.Errorf("%w: header %s is not base64", ErrMismatch, adyenHeader)
		}
		return v.ring.verify(r, "", r.Body, sig)
	}
	if jsonpath.ValidUnique(r.Body) != nil {
		return fmt.Errorf("%w: the body is no JSON with one reading", ErrMissing)
	}
	items, _, err := splitAdyen(r.Body, maxAdyen)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	err = fmt.Errorf("%w: no item", ErrMissing)
	for _, item := range items {
		if err = v.VerifyItem(r, item.Raw); err == nil {
			return nil
		}
	}
	return err
}

// maxAdyen bounds the MACs that one request can ask for; Adyen sends one item,
// or six.
const maxAdyen = 1000

// adyenFields are what is signed, in this order, joined by colons.
var adyenFields = []string{
	"pspReference", "originalReference", "merchantAccountCode", "merchantReference", "amount.value", "amount.currency", "eventCode", "success",
}

func (v *adyenVerifier) VerifyItem(r *Request, raw []byte) error {
	if len(r.Header[adyenHeader]) > 0 {
		return nil // the whole body was signed
	}
	text := textIn(raw, "additionalData.hmacSignature")
	if text == "" {
		return fmt.Errorf("%w: additionalData.hmacSignature", ErrMissing)
	}
	sig, err := fromBase64(text)
	if err != nil {
		return fmt.Errorf("%w: additionalData.hmacSignature is not base64", ErrMismatch)
	}
	values := make([]string, len(adyenFields))
	for i, field := range adyenFields {
		values[i] = textIn(raw, field)
	}
	return v.ring.verify(r, strings.Join(values, ":"), nil, sig)
}

// splitAdyen finds the notification items. Other Adyen webhooks have none.
func splitAdyen(body []byte, limit int) ([]Item, bool, error) {
	root, ok := jsonpath.Root(body)
	if !ok || root.Kind != jsonpath.Object {
		return nil, false, fmt.Errorf("%w: no JSON object", ErrShape)
	}
	list, found := root.Get(path("notificationItems"))
	if !found {
		return nil, false, nil
	}
	if list.Kind != jsonpath.Array {
		return nil, false, fmt.Errorf("%w: notificationItems is no array", ErrShape)
	}
	var context object
	context.from(root, "live")
	b := &batch{limit: limit}
	err := each(list, func(item jsonpath.Value) error {
		if inner, ok := item.Get(path("NotificationRequestItem")); ok {
			item = inner
		}
		return b.add(Item{Raw: item.Raw, Context: context.bytes(), Named: true})
	})
	return b.items, true, err
}
