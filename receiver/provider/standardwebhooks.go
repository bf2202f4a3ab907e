package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

func standardWebhooks() Preset {
	return Preset{
		Name: "standard-webhooks", Title: "Standard Webhooks", Confidence: "high",
		Docs:     "https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md",
		Verifies: "webhook-signature: v1,… (HMAC-SHA256 of id.timestamp.body, base64; v1a: Ed25519), one or several; the timestamp within verify.tolerance",
		Secrets:  "whsec_ and base64, whose bytes are the key; whpk_ and base64 for Ed25519",
		Trap:     "webhook-timestamp and webhook-signature are made anew for each attempt. Unlike Stripe's, the secret is base64 behind whsec_.",
		Verifier: newStandard("Webhook"),
		Keys:     []string{"header:Webhook-Id"},
		Types:    []string{"json:type"},
		Created:  "json:timestamp", Entity: "json:data.id", Version: "json:timestamp",
		Sample: standardSample("Webhook"),
	}
}

func svix() Preset {
	return Preset{
		Name: "svix", Title: "Svix (and senders that use it, such as Resend)", Confidence: "high",
		Docs:     "https://docs.svix.com/receiving/verifying-payloads/how",
		Verifies: "svix-signature: v1,… (HMAC-SHA256 of id.timestamp.body, base64), or the same named webhook-…; the timestamp within verify.tolerance",
		Secrets:  "whsec_ and base64, whose bytes are the key",
		Trap:     "svix-timestamp and svix-signature are made anew for each attempt; Resend's data.email_id is shared by sent, delivered and opened",
		Verifier: newStandard("Svix", "Webhook"),
		Keys:     []string{"header:Svix-Id", "header:Webhook-Id"},
		Types:    []string{"json:type"},
		Created:  "json:created_at", Entity: "json:data.email_id", Version: "json:created_at",
		Sample: standardSample("Svix"),
	}
}

const standardTestKey = "aG9va29uY2UtdGVzdC1zZWNyZXQtMTIzNDU2Nzg="

func standardSample(name string) Sample {
	return Sample{
		Source: `secrets: [ "whsec_` + standardTestKey + `" ]`, Secret: "whsec_" + standardTestKey,
		Body:   `{"type":"invoice.paid","timestamp":"{time}","data":{"id":"{id}"}}`,
		Header: map[string]string{name + "-Id": "msg_{id}", name + "-Timestamp": "{now}"},
		Sign: func(d *Draft) {
			key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(d.Secret, "whsec_"))
			m := hmac.New(sha256.New, key)
			m.Write([]byte(d.Header.Get(name+"-Id") + "." + d.seconds() + "." + string(d.Body)))
			d.Header.Set(name+"-Signature", "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)))
		},
	}
}

// newStandard makes the verifier of headers NAME-Id, NAME-Timestamp and
// NAME-Signature; of several names the first that is there counts.
func newStandard(names ...string) func(Settings) (Verifier, error) {
	return func(s Settings) (Verifier, error) {
		tolerance, err := s.timed()
		if err != nil {
			return nil, err
		}
		macs, keys, err := standardKeys(s)
		if err != nil {
			return nil, err
		}
		v := &standard{}
		for _, scheme := range []struct {
			ring   keyring
			prefix string
		}{{macs, "v1,"}, {keys, "v1a,"}} {
			if scheme.ring == nil {
				continue
			}
			part := &signed{ring: scheme.ring, list: " ", prefix: scheme.prefix, decode: fromBase64, tolerance: tolerance}
			for _, name := range names {
				part.headers = append(part.headers, name+"-Signature")
				part.stamps = append(part.stamps, name+"-Timestamp")
			}
			part.content = func(r *Request, stamp string) (string, error) {
				id, err := single(r.Header, names[present(r.Header, part.headers)]+"-Id")
				return id + "." + stamp + ".", err
			}
			v.parts = append(v.parts, part)
		}
		return v, nil
	}
}

// standardKeys parts HMAC secrets from Ed25519 keys.
func standardKeys(s Settings) (macs, keys keyring, err error) {
	ring, err := newKeyring(s, func(secret string) (ringKey, error) {
		if text, ok := strings.CutPrefix(secret, "whpk_"); ok {
			raw, err := fromBase64(text)
			if err != nil {
				return ringKey{}, errors.New("is not base64 behind whpk_")
			}
			return publicKey(0, "ed25519")(fmt.Sprintf("%x", raw))
		}
		raw, err := fromBase64(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(raw) == 0 {
			return ringKey{}, errors.New("is not base64 (behind whsec_, if that stands in front)")
		}
		return hmacOf(sha256Hash, raw), nil
	})
	if err != nil {
		return nil, nil, err
	}
	i := 0
	for _, secret := range s.all() {
		if secret.Value == "" {
			continue
		}
		if strings.HasPrefix(secret.Value, "whpk_") {
			keys = append(keys, ring[i])
		} else {
			macs = append(macs, ring[i])
		}
		i++
	}
	return macs, keys, nil
}

// standard accepts what one of its schemes accepts.
type standard struct{ parts []*signed }

func (v *standard) Credentials() []string { return v.parts[0].headers }

func (v *standard) Verify(r *Request) (err error) {
	for _, part := range v.parts {
		if err = part.Verify(r); err == nil {
			return nil
		}
	}
	return err
}
