package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/jsonpath"
)

const (
	pagbankToken     = "X-Authenticity-Token"
	pagbankSignature = "X-Payload-Signature"
)

func pagbank() Preset {
	return Preset{
		Name: "pagbank", Title: "PagBank / PagSeguro", Confidence: "medium",
		Docs: "https://developer.pagbank.com.br/reference/confirmar-autenticidade-da-notificacao",
		Verifies: "x-authenticity-token (SHA-256 of token-body, hex) with a token as secret; x-payload-signature (ECDSA, SHA-256, base64, one " +
			"or several) with a public key as secret",
		Secrets: "the account's token, or the public key of type webhook that the API gives you",
		Trap: "The body is the order or charge itself, without an event id: its id is shared by all its states. The key is the id and every " +
			"charge with its status. The token's header is reported missing in the sandbox.",
		Takes:    []string{"keys"},
		Verifier: newPagbank,
		Keys:     []string{"json:{id}:{context:state}"},
		Types:    []string{"context:kind"},
		Created:  "json:created_at", Entity: "json:id", Version: "json:charges.0.paid_at",
		Split: pagbankState,
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body: `{"id":"ORDE_{id}","created_at":"{time}","charges":[{"id":"CHAR_{id}","status":"PAID"}]}`,
			Sign: func(d *Draft) {
				sum := sha256.Sum256([]byte(d.Secret + "-" + string(d.Body)))
				d.Header.Set(pagbankToken, hex.EncodeToString(sum[:]))
			},
		},
	}
}

// pagbankVerifier takes each secret for the scheme that it belongs to, so that
// neither scheme can be asked to accept the other's.
type pagbankVerifier struct{ tokens, keys keyring }

func newPagbank(s Settings) (Verifier, error) {
	v := &pagbankVerifier{}
	_, err := newKeyring(s, func(secret string) (ringKey, error) { return ringKey{}, nil })
	if err != nil {
		return nil, err
	}
	for _, secret := range s.all() {
		if secret.Value == "" {
			continue
		}
		key, err := publicKey(sha256Hash, "ecdsa")(secret.Value)
		into := &v.keys
		if err != nil && meansKey(secret.Value) {
			return nil, fmt.Errorf("%w: a secret %w", ErrConfig, err)
		}
		if err != nil {
			key, into = pagbankDigest(secret.Value), &v.tokens
		}
		key.expires = secret.Expires
		*into = append(*into, key)
	}
	return v, nil
}

// pagbankDigest is the plain hash that the older scheme uses for a MAC.
func pagbankDigest(token string) ringKey {
	return ringKey{made: func(prefix string, body []byte, sigs [][]byte) bool {
		h := sha256.New()
		h.Write([]byte(token + "-" + prefix))
		h.Write(body)
		return oneEqual(h.Sum(nil), sigs)
	}}
}

func (v *pagbankVerifier) Credentials() []string { return []string{pagbankToken, pagbankSignature} }

func (v *pagbankVerifier) Verify(r *Request) error {
	if len(v.keys) > 0 && (len(v.tokens) == 0 || len(r.Header[pagbankSignature]) > 0) {
		text := strings.Join(r.Header[pagbankSignature], ",")
		if text == "" {
			return fmt.Errorf("%w: header %s", ErrMissing, pagbankSignature)
		}
		var sigs [][]byte
		for _, entry := range strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' || c == ';' }) {
			if sig, err := fromBase64(entry); err == nil && len(sig) > 0 {
				sigs = append(sigs, sig)
			}
		}
		return v.keys.verify(r, "", r.Body, sigs...)
	}
	text, err := single(r.Header, pagbankToken)
	if err != nil {
		return err
	}
	sum, err := fromHex(text)
	if err != nil {
		return fmt.Errorf("%w: header %s is not hexadecimal", ErrMismatch, pagbankToken)
	}
	return v.tokens.verify(r, "", r.Body, sum)
}

// pagbankState says what state the body tells: every charge with its status.
// They are sorted, as the order of a list is no state.
func pagbankState(body []byte, limit int) ([]Item, bool, error) {
	root, ok := jsonpath.Root(body)
	if !ok || root.Kind != jsonpath.Object {
		return nil, false, fmt.Errorf("%w: no JSON object", ErrShape)
	}
	var states, statuses []string
	charges, _ := root.Get(path("charges"))
	err := each(charges, func(charge jsonpath.Value) error {
		id, status := textIn(charge.Raw, "id"), textIn(charge.Raw, "status")
		if len(states) == limit {
			return fmt.Errorf("%w: at most %d", ErrTooMany, limit)
		}
		states = append(states, fmt.Sprintf("%q=%q", id, status)) // quoted: nothing runs together
		statuses = append(statuses, status)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	if own := textIn(body, "status"); own != "" {
		states, statuses = append(states, fmt.Sprintf("%q", own)), append(statuses, own)
	}
	var context object
	if len(states) > 0 {
		slices.Sort(states)
		context.text("state", strings.Join(states, ","))
		prefix, _, _ := strings.Cut(textIn(body, "id"), "_")
		kind := map[string]string{"ORDE": "order", "CHAR": "charge"}[prefix]
		if kind == "" {
			kind = "resource"
		}
		context.text("kind", kind+"."+statuses[len(statuses)-1])
	}
	return []Item{{Raw: body, Context: context.bytes()}}, false, nil
}
