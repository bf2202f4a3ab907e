package provider

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	stoneID   = "X-Stone-Webhook-Event-Id"
	stoneType = "X-Stone-Webhook-Event-Type"
)

func stone() Preset {
	return Preset{
		Name: "stone-openbank", Title: "Stone OpenBank", Confidence: "high",
		Docs: "https://docs.openbank.stone.com.br/docs/guias/webhooks",
		Verifies: "the body is a JWE (RSA-OAEP-256, A256GCM) for your key that holds a JWS (RS256) by Stone; the type in the header must be " +
			"the one that is signed",
		Secrets: "the private key of your application (PEM, or the base64 of its DER form); Stone's own keys are fetched " +
			"(verify.keys pins them, verify.keys_url names the sandbox)",
		Trap: "The body is encrypted anew for each attempt, jti and event_notified_at too: its hash is no key. The event id's header is not " +
			"signed: what is signed once (jti) is taken once. To decrypt proves nothing: everybody has your public key. The event's body is " +
			"what was signed, decrypted.",
		Takes:     []string{"keys", "keys_url"},
		Verifier:  newStone,
		Volatile:  map[string]string{"json:jti": "is made anew for each attempt", "json:event_notified_at": "is the time of sending"},
		Keys:      []string{"header:" + stoneID},
		Guard:     Guard{Recipe: "json:jti"},
		FreshBody: true,
		Types:     []string{"json:event_type"},
		Created:   "json:event_happened_at", Entity: "json:target_data.id", Version: "json:event_happened_at",
		Sample: Sample{
			Source: "secrets: [ \"" + testRSA + "\" ]\nverify: { keys: [ \"" + testRSAPublic + "\" ] }", Secret: testRSA,
			Body:   `{"jti":"{id}","event_type":"cash_in_pix","event_happened_at":"{time}","target_type":"pix","target_data":{"id":"{id}","status":"paid"}}`,
			Header: map[string]string{stoneID: "{id}", stoneType: "cash_in_pix"},
			Sign:   signStone,
		},
	}
}

// The algorithms are ours to choose, not the sender's.
var (
	stoneKeyAlgs  = []jose.KeyAlgorithm{jose.RSA_OAEP_256}
	stoneEncs     = []jose.ContentEncryption{jose.A256GCM}
	stoneSigAlgs  = []jose.SignatureAlgorithm{jose.RS256}
	errNotPrivate = errors.New("is no RSA private key; write PEM, or the base64 of its DER form")
)

type stoneVerifier struct {
	own    []stoneKey
	pinned []*rsa.PublicKey
	keys   *published[jose.JSONWebKeySet]
}

type stoneKey struct {
	key     *rsa.PrivateKey
	expires time.Time
}

func newStone(s Settings) (Verifier, error) {
	v := &stoneVerifier{}
	if err := eachSecret(s, func(value string, expires time.Time) error {
		key, err := parsePrivateKey(value)
		v.own = append(v.own, stoneKey{key, expires})
		return err
	}); err != nil {
		return nil, err
	}
	for i, text := range s.Keys {
		pub, err := parsePublicKey(text)
		key, ok := pub.(*rsa.PublicKey)
		if err != nil || !ok {
			return nil, fmt.Errorf("%w: verify.keys: key %d is no RSA public key", ErrConfig, i+1)
		}
		v.pinned = append(v.pinned, key)
	}
	if v.pinned == nil {
		v.keys = newPublished(s, "https://api.openbank.stone.com.br/api/v1/discovery/keys", parseJWKS)
	}
	return v, nil
}

func parsePrivateKey(text string) (*rsa.PrivateKey, error) {
	der, err := base64.StdEncoding.DecodeString(text)
	if block, _ := pem.Decode([]byte(text)); block != nil {
		der, err = block.Bytes, nil
	}
	if err != nil {
		return nil, errNotPrivate
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key, nil
	}
	any, err := x509.ParsePKCS8PrivateKey(der)
	key, ok := any.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, errNotPrivate
	}
	return key, nil
}

func (v *stoneVerifier) Credentials() []string { return nil }

func (v *stoneVerifier) Verify(r *Request) error {
	if !onlyMembers(r.Body, "encrypted_body") {
		return fmt.Errorf("%w: the body is not {\"encrypted_body\": …}", ErrMissing)
	}
	token, err := v.decrypt(r, text(r.Body, "encrypted_body"))
	if err != nil {
		return err
	}
	sig, err := jose.ParseSignedCompact(token, stoneSigAlgs)
	if err != nil {
		return fmt.Errorf("%w: what is encrypted is no JWS with RS256", ErrMismatch)
	}
	verify := func(key *rsa.PublicKey) error {
		plain, err := sig.Verify(key)
		if err != nil {
			return fmt.Errorf("%w: not signed with Stone's key", ErrMismatch)
		}
		r.Plain = plain
		return nil
	}
	err = fmt.Errorf("%w: no key", ErrMismatch)
	if v.keys != nil {
		err = withKey(v.keys, r, sig.Signatures[0].Header.KeyID, verify)
	}
	for _, key := range v.pinned {
		if err = verify(key); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	// The headers are not signed: they may say nothing else.
	if got, err := single(r.Header, stoneType); err != nil || got != text(r.Plain, "event_type") {
		return fmt.Errorf("%w: header %s is not the signed event_type", ErrMismatch, stoneType)
	}
	return nil
}

func (v *stoneVerifier) decrypt(r *Request, compact string) (string, error) {
	box, err := jose.ParseEncryptedCompact(compact, stoneKeyAlgs, stoneEncs)
	if err != nil {
		return "", fmt.Errorf("%w: encrypted_body is no JWE with RSA-OAEP-256 and A256GCM", ErrMismatch)
	}
	left := false
	for _, own := range v.own {
		if !active(own.expires, r.Now) {
			continue
		}
		left = true
		if plain, err := box.Decrypt(own.key); err == nil {
			r.Old = !own.expires.IsZero()
			return string(plain), nil
		}
	}
	if !left {
		return "", errExpired
	}
	return "", fmt.Errorf("%w: encrypted_body is not for this key", ErrMismatch)
}

func signStone(d *Draft) {
	key, err := parsePrivateKey(d.Secret)
	if err != nil {
		return
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", testKid))
	if err != nil {
		return
	}
	// A new jti for each attempt, as the sender makes it.
	claims := strings.Replace(string(d.Body), `"jti":"`+d.ID, `"jti":"`+NewID(), 1)
	sig, err := signer.Sign([]byte(claims))
	if err != nil {
		return
	}
	token, err := sig.CompactSerialize()
	if err != nil {
		return
	}
	box, err := jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: jose.RSA_OAEP_256, Key: &key.PublicKey}, nil)
	if err != nil {
		return
	}
	sealed, err := box.Encrypt([]byte(token))
	if err != nil {
		return
	}
	compact, err := sealed.CompactSerialize()
	if err != nil {
		return
	}
	d.Body, _ = json.Marshal(map[string]string{"encrypted_body": compact})
}
