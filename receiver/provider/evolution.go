package provider

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/jsonpath"
)

// evolutionTolerance: the token is made before the first of ten attempts, which
// end about 21 minutes later, and lives for ten: the issuer's own end would
// lose the last attempts for good.
const evolutionTolerance = 45 * time.Minute

func evolution() Preset {
	return Preset{
		Name: "evolution", Title: "Evolution API", Confidence: "high",
		Docs: "https://doc.evolution-api.com/v2/en/configuration/webhooks",
		Verifies: "Authorization: Bearer … (JWT, HS256), issued within verify.tolerance; or a header of yours with the secret " +
			"(verify: { scheme: static, header: … })",
		Secrets: "the value of the header jwt_key that you set for the instance's webhook; for scheme static the header's value",
		Trap: "Nothing signs the body. One message is created, delivered and read under one id: status is part of the key. date_time is local " +
			"time with a Z glued on, and differs where an instance's and the global webhook both send. A 4xx is never repeated. Global webhooks " +
			"(WEBHOOK_GLOBAL_*) send neither header.",
		Schemes: []string{"jwt", "static"}, Tolerance: evolutionTolerance,
		Verifier: newEvolution,
		Volatile: map[string]string{"json:date_time": "is the time of sending", "json:data.messageId": "is a row of the sender's own database, missing where that is off", "json:apikey": "is a secret of the instance"},
		Keys: []string{
			"json:{instance}:{event}:{data.keyId}:{data.status}",       // messages.update
			"json:{instance}:{event}:{data.key.id}:{data.key.fromMe}:", // messages.upsert, send.message
			"json:{instance}:{event}:id:{data.id}:{data.fromMe}",       // messages.delete
			"json:{context:instance}:{context:event}:{keyId}:{status}", // the same within a list
			"json:{context:instance}:{context:event}:{key.id}:{key.fromMe}:",
			"json:{context:instance}:{context:event}:{key.id}",
			"body", // contacts, chats, presence and the like have no id
		},
		BodyWindow: time.Hour, // the ten attempts take about 21 minutes, and date_time tells emissions apart
		Types:      []string{"json:event", "context:event"},
		Created:    "json:data.messageTimestamp", Entity: "json:data.key.id", Version: "json:data.messageTimestamp",
		Split: splitEvolution, Batches: true,
		ParkNoKey: true,
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body: `{"event":"messages.upsert","instance":"hookonce","data":{"key":{"id":"{id}","fromMe":false,"remoteJid":"1@s.whatsapp.net"},` +
				`"messageTimestamp":{seconds}},"date_time":"{time}"}`,
			Unsigned: true,
			Sign: func(d *Draft) {
				enc := base64.RawURLEncoding.EncodeToString
				now := d.Now.Unix()
				token := enc([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
					enc(fmt.Appendf(nil, `{"iat":%d,"exp":%d,"app":"evolution","action":"webhook"}`, now, now+600))
				d.Header.Set("Authorization", "Bearer "+token+"."+enc(d.hmac(sha256.New, token)))
			},
		},
	}
}

func newEvolution(s Settings) (Verifier, error) {
	if s.Scheme == "static" {
		return headerSecret("X-Hookonce-Token")(s)
	}
	tolerance, err := s.timed()
	if err != nil {
		return nil, err
	}
	ring, err := newKeyring(s, hmacKey(sha256Hash))
	return &evolutionVerifier{ring, tolerance}, err
}

// evolutionVerifier reads a JWT. The algorithm is HS256, whatever the token says
// about itself.
type evolutionVerifier struct {
	ring      keyring
	tolerance time.Duration
}

func (v *evolutionVerifier) Credentials() []string { return []string{"Authorization"} }

func (v *evolutionVerifier) Verify(r *Request) error {
	value, err := single(r.Header, "Authorization")
	if err != nil {
		return err
	}
	scheme, token, _ := strings.Cut(value, " ")
	parts := strings.Split(token, ".")
	if !strings.EqualFold(scheme, "Bearer") || len(parts) != 3 || len(token) > 4096 {
		return fmt.Errorf("%w: Authorization is no bearer token of three parts", ErrMismatch)
	}
	sig, err := strictly(base64.RawURLEncoding, parts[2])
	if err != nil || len(sig) == 0 {
		return fmt.Errorf("%w: the token's signature is not base64url", ErrMismatch)
	}
	head, err := strictly(base64.RawURLEncoding, parts[0])
	if err != nil || text(head, "alg") != "HS256" {
		return fmt.Errorf("%w: the token's algorithm is not HS256", ErrMismatch)
	}
	if err := v.ring.verify(r, parts[0]+"."+parts[1], nil, sig); err != nil {
		return err
	}
	claims, err := strictly(base64.RawURLEncoding, parts[1])
	if err != nil {
		return fmt.Errorf("%w: the token's claims cannot be read", ErrMismatch)
	}
	return fresh(text(claims, "iat"), r.Now, v.tolerance)
}

// splitEvolution takes lists apart: messages.set, contacts.* and chats.* carry
// arrays in data.
func splitEvolution(body []byte, limit int) ([]Item, bool, error) {
	root, ok := jsonpath.Root(body)
	if !ok {
		return nil, false, nil
	}
	data, _ := root.Get(path("data"))
	if data.Kind != jsonpath.Array {
		return nil, false, nil
	}
	var context object
	context.from(root, "event", "instance", "sender", "server_url")
	b := &batch{limit: limit}
	err := each(data, func(item jsonpath.Value) error { return b.add(Item{Raw: item.Raw, Context: context.bytes()}) })
	return b.items, true, err
}
