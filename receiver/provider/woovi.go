package provider

import (
	"encoding/base64"
	"fmt"

	"github.com/hookonce/hookonce"
)

const (
	wooviRSA  = "X-Webhook-Signature"
	wooviHMAC = "X-Openpix-Signature"
)

func woovi() Preset {
	return Preset{
		Name: "woovi", Title: "Woovi / OpenPix", Confidence: "high",
		Docs: "https://developers.woovi.com/docs/webhook/seguranca/webhook-signature-validation",
		Verifies: "x-webhook-signature (RSA, SHA-256 of the body, base64) with any of the public keys that Woovi lists; " +
			"X-OpenPix-Signature (HMAC-SHA1 of the body, base64) with the webhook's secret key",
		Secrets: "nothing: keys come from Woovi (a public key pins one); the secret key for the older HMAC. Set verify.id to your company's id: " +
			"Woovi signs for every customer with one key",
		Trap: "There is no event id, and correlationID alone merges created, completed and expired: event is part of the key. Signed means " +
			"\"by Woovi\", not \"for you\". The HMAC of the documentation's example does not match its body.",
		NoSecrets: true,
		Takes:     []string{"keys", "keys_url", "id"},
		Verifier:  newWoovi,
		Keys: []string{
			"json:{event}:charge:{charge.transactionID}", "json:{event}:charge:{charge.correlationID}", "json:{event}:pix:{pix.endToEndId}",
			"json:{event}:tx:{pix.transactionID}",
		},
		Types:   []string{"json:event"},
		Created: "json:pix.time", Entity: "json:charge.correlationID", Version: "json:charge.updatedAt",
		Probe: func(r *Request, _ Settings) (Reply, bool) {
			return Reply{Answer: hookonce.Answer{Status: 200}},
				onlyMembers(r.Body, "data_criacao", "event") || onlyMembers(r.Body, "data_criacao", "evento")
		},
		Sample: Sample{
			Source: `secrets: [ "` + testRSAPublic + `" ]`, Secret: testRSA,
			Body: `{"event":"OPENPIX:CHARGE_COMPLETED","charge":{"status":"COMPLETED","transactionID":"{id}","correlationID":"c-{id}"},` +
				`"pix":{"time":"{time}"},"company":{"id":"1"}}`,
			Sign: func(d *Draft) { d.Header.Set(wooviRSA, base64.StdEncoding.EncodeToString(d.rsa(string(d.Body)))) },
		},
	}
}

type wooviVerifier struct {
	public, secret keyring
	keys           *published[[]ringKey]
	company        string
}

func newWoovi(s Settings) (Verifier, error) {
	v := &wooviVerifier{company: s.ID}
	if len(s.all()) > 0 {
		if _, err := newKeyring(s, func(string) (ringKey, error) { return ringKey{}, nil }); err != nil {
			return nil, err
		}
	}
	for _, secret := range s.all() {
		if secret.Value == "" {
			continue
		}
		key, err := publicKey(sha256Hash, "rsa")(secret.Value)
		into := &v.public
		if err != nil && meansKey(secret.Value) {
			return nil, fmt.Errorf("%w: a secret %w", ErrConfig, err)
		}
		if err != nil {
			key, into = hmacOf(sha1Hash, []byte(secret.Value)), &v.secret
		}
		key.expires = secret.Expires
		*into = append(*into, key)
	}
	if v.public == nil && v.secret == nil {
		v.keys = newPublished(s, "https://api.woovi.com/api/v1/webhook/public-keys", keysInTexts)
	}
	return v, nil
}

func (v *wooviVerifier) Credentials() []string { return []string{wooviRSA, wooviHMAC} }

func (v *wooviVerifier) Verify(r *Request) error {
	if err := v.verify(r); err != nil {
		return err
	}
	if v.company != "" && text(r.Body, "company.id") != v.company && text(r.Body, "account.clientId") != v.company {
		return fmt.Errorf("%w: signed by Woovi, but for another company", ErrMismatch)
	}
	return nil
}

func (v *wooviVerifier) verify(r *Request) error {
	name := wooviRSA
	if v.public == nil && v.keys == nil || len(r.Header[wooviRSA]) == 0 && v.secret != nil {
		name = wooviHMAC
	}
	text, err := single(r.Header, name)
	if err != nil {
		return err
	}
	sig, err := fromBase64(text)
	if err != nil {
		return fmt.Errorf("%w: header %s is not base64", ErrMismatch, name)
	}
	switch {
	case name == wooviHMAC:
		return v.secret.verify(r, "", r.Body, sig)
	case v.public != nil:
		return v.public.verify(r, "", r.Body, sig)
	}
	for _, missing := range []bool{false, true} {
		keys, fetchErr := v.keys.get(r.Now, missing)
		if fetchErr != nil {
			return fetchErr
		}
		if err = keyring(keys).verify(r, "", r.Body, sig); err == nil {
			return nil
		}
	}
	return err
}
