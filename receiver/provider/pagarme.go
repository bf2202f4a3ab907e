package provider

import (
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

const pagarmeHeader = "X-Webhook-Asymmetric-Signature"

func pagarme() Preset {
	return Preset{
		Name: "pagarme", Title: "Pagar.me", Confidence: "medium",
		Docs: "https://docs.pagar.me/docs/webhooks",
		Verifies: "X-Webhook-Asymmetric-Signature: alg=RS256; kid=…; signature=… over the body, with the keys that Pagar.me publishes; " +
			"or HTTP Basic (verify: { scheme: basic }); or v4's X-Hub-Signature: sha1=… (scheme: hmac-sha1)",
		Secrets: "nothing: keys come from Pagar.me (a public key pins one); user:password for scheme basic; the API key for scheme hmac-sha1",
		Trap: "v4 has no event id, and its fingerprint is one per transaction: the key is id, old_status and current_status. Whether accounts " +
			"without a plugin get the signature is not known: choose a scheme that your deliveries carry.",
		Schemes:   []string{"rs256", "basic", "hmac-sha1"},
		NoSecrets: true,
		Takes:     []string{"keys", "keys_url"},
		Verifier:  newPagarme,
		Keys:      []string{"json:id", "form:{id}:{old_status}:{current_status}"},
		Types:     []string{"json:type", "form:event"},
		Created:   "json:created_at", Entity: "json:data.id", Version: "json:data.updated_at",
		Sample: Sample{
			Source: `secrets: [ "` + testRSAPublic + `" ]`, Secret: testRSA,
			Body: `{"id":"hook_{id}","type":"order.paid","created_at":"{time}","data":{"id":"or_{id}","status":"paid"}}`,
			Sign: func(d *Draft) {
				d.Header.Set(pagarmeHeader, "alg=RS256; kid="+testKid+"; signature="+base64.RawURLEncoding.EncodeToString(d.rsa(string(d.Body))))
			},
		},
	}
}

func newPagarme(s Settings) (Verifier, error) {
	switch s.Scheme {
	case "basic":
		return basic(s)
	case "hmac-sha1":
		ring, err := newKeyring(s, hmacKey(sha1Hash))
		return &signed{ring: ring, headers: []string{"X-Hub-Signature"}, prefix: "sha1=", decode: fromHex}, err
	}
	v := &pagarmeVerifier{}
	if len(s.all()) > 0 {
		var err error
		v.pinned, err = newKeyring(s, publicKey(sha256Hash, "rsa"))
		return v, err
	}
	v.keys = newPublished(s, "https://hubapi.pagar.me/.well-known/jwks.json", parseJWKS)
	return v, nil
}

type pagarmeVerifier struct {
	pinned keyring
	keys   *published[jose.JSONWebKeySet]
}

func (v *pagarmeVerifier) Credentials() []string { return []string{pagarmeHeader} }

func (v *pagarmeVerifier) Verify(r *Request) error {
	text, err := single(r.Header, pagarmeHeader)
	if err != nil {
		return err
	}
	fields, err := parsePagarme(text)
	if err != nil {
		return err
	}
	sig, err := fromBase64URL(fields["signature"])
	if err != nil || len(sig) == 0 {
		return fmt.Errorf("%w: the signature is not base64url", ErrMismatch)
	}
	if v.keys == nil {
		return v.pinned.verify(r, "", r.Body, sig)
	}
	return withKey(v.keys, r, fields["kid"], func(key *rsa.PublicKey) error {
		return keyring{ringOf(key, sha256Hash)}.verify(r, "", r.Body, sig)
	})
}

// parsePagarme reads "alg=RS256; kid=…; signature=…". Only RS256 is taken: the
// sender does not choose how we verify.
func parsePagarme(text string) (map[string]string, error) {
	fields := map[string]string{}
	for entry := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(entry), "=")
		if _, twice := fields[name]; twice || len(fields) == 8 {
			return nil, fmt.Errorf("%w: the header has a field twice, or too many", ErrMismatch)
		}
		fields[name] = value
	}
	if fields["alg"] != "RS256" {
		return nil, fmt.Errorf("%w: the algorithm is not RS256", ErrMismatch)
	}
	return fields, nil
}

func parseJWKS(doc []byte) (jose.JSONWebKeySet, error) {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(doc, &set); err != nil {
		return set, err
	}
	if len(set.Keys) == 0 {
		return set, fmt.Errorf("the list of keys is empty")
	}
	return set, nil
}

// withKey verifies with the key of an id, or, without an id, with any. A key
// that is not there, and one that does not verify, is looked for once more in
// a fresh list.
func withKey(keys *published[jose.JSONWebKeySet], r *Request, kid string, verify func(*rsa.PublicKey) error) error {
	err := fmt.Errorf("%w: no published key has the id", ErrMismatch)
	for _, missing := range []bool{false, true} {
		set, fetchErr := keys.get(r.Now, missing)
		if fetchErr != nil {
			return fetchErr
		}
		for _, k := range set.Keys {
			pub, ok := k.Key.(*rsa.PublicKey)
			if !ok || kid != "" && k.KeyID != kid || k.Use != "" && k.Use != "sig" || k.Algorithm != "" && k.Algorithm != "RS256" {
				continue
			}
			if err = verify(pub); err == nil {
				return nil
			}
		}
	}
	return err
}
