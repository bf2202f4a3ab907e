package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"
)

const (
	mercadoSignature = "X-Signature"
	mercadoRequest   = "X-Request-Id"
)

func mercadopago() Preset {
	return Preset{
		Name: "mercadopago", Title: "Mercado Pago", Confidence: "medium",
		Docs: "https://www.mercadopago.com.br/developers/pt/docs/your-integrations/notifications/webhooks",
		Verifies: "x-signature: ts=…,v1=… (HMAC-SHA256 of id:<data.id>;request-id:<x-request-id>;ts:<ts>;, hex), with data.id of the URL as " +
			"it is or in lower case; a body that names another data.id is refused",
		Secrets: "the secret signature of the application",
		Trap: "The body is not signed: a signature is taken once only, and with one body. data.id alone merges created, updated and refunded. " +
			"x-request-id and x-signature are made for each delivery. Whether the body's id survives a redelivery is not documented: let the " +
			"effect look the payment up. QR notifications and the older IPN are not signed and are refused.",
		Tolerance: 24 * time.Hour,
		Verifier:  newMercadoPago,
		Volatile:  map[string]string{"header:X-Request-Id": "is made anew for each delivery"},
		Keys:      []string{"json:{query:data.id}:{id}", "json:{query:data.id}:{type}:{action}:{date_created}"},
		Guard:     Guard{Recipe: "header:" + mercadoSignature, Reject: true},
		Types:     []string{"json:action", "json:type"},
		Created:   "json:date_created", Entity: "json:data.id", Version: "json:date_created",
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body:     `{"id":"{id}","type":"payment","action":"payment.updated","date_created":"{time}","data":{"id":"p{id}"}}`,
			Query:    "data.id=p{id}&type=payment",
			Unsigned: true,
			Sign: func(d *Draft) {
				request, stamp := "r-"+d.ID, d.seconds()
				d.Header.Set(mercadoRequest, request)
				sum := d.hmac(sha256.New, "id:p"+d.ID+";request-id:"+request+";ts:"+stamp+";")
				d.Header.Set(mercadoSignature, "ts="+stamp+",v1="+hex.EncodeToString(sum))
			},
		},
	}
}

func newMercadoPago(s Settings) (Verifier, error) {
	tolerance, err := s.timed()
	if err != nil {
		return nil, err
	}
	ring, err := newKeyring(s, hmacKey(sha256Hash))
	return &mercadoPagoVerifier{ring, tolerance}, err
}

type mercadoPagoVerifier struct {
	ring      keyring
	tolerance time.Duration
}

func (v *mercadoPagoVerifier) Credentials() []string { return []string{mercadoSignature} }

func (v *mercadoPagoVerifier) Verify(r *Request) error {
	header, err := single(r.Header, mercadoSignature)
	if err != nil {
		return err
	}
	stamp, sigs, err := stampAndSignatures(header, ",", "ts", "v1")
	if err != nil {
		return err
	}
	if err := freshEither(stamp, r.Now, v.tolerance); err != nil {
		return err
	}
	_, query, _ := strings.Cut(r.Target, "?")
	values, err := url.ParseQuery(query)
	if err != nil || len(values["data.id"]) > 1 || len(r.Header[mercadoRequest]) > 1 {
		return fmt.Errorf("%w: parameter data.id or header %s has several readings", ErrMismatch, mercadoRequest)
	}
	id := values.Get("data.id")
	if in := text(r.Body, "data.id"); in != "" && !strings.EqualFold(in, id) {
		return fmt.Errorf("%w: the body names another data.id than the signed URL", ErrMismatch)
	}
	// Whether the provider signs the id as it is or in lower case is disputed
	// among its own libraries. Either needs the secret.
	err = v.ring.verify(r, mercadoManifest(id, r.Header.Get(mercadoRequest), stamp), nil, sigs...)
	if lower := strings.ToLower(id); err != nil && lower != id {
		err = v.ring.verify(r, mercadoManifest(lower, r.Header.Get(mercadoRequest), stamp), nil, sigs...)
	}
	return err
}

// mercadoManifest leaves out what has no value.
func mercadoManifest(id, request, stamp string) string {
	var b strings.Builder
	for _, pair := range [][2]string{{"id", id}, {"request-id", request}, {"ts", stamp}} {
		if pair[1] != "" {
			b.WriteString(pair[0] + ":" + pair[1] + ";")
		}
	}
	return b.String()
}

// stampAndSignatures reads "ts=…,v1=…[,v1=…]": one timestamp, and the hexadecimal
// signatures of one scheme. Malformed ones and other schemes are passed over.
func stampAndSignatures(header, separator, stampName, sigName string) (string, [][]byte, error) {
	stamp := ""
	var sigs [][]byte
	for entry := range strings.SplitSeq(header, separator) {
		name, value, _ := strings.Cut(strings.TrimSpace(entry), "=")
		switch name {
		case stampName:
			if stamp != "" {
				return "", nil, fmt.Errorf("%w: two timestamps", ErrMismatch)
			}
			stamp = value
		case sigName:
			if sig, err := hex.DecodeString(value); err == nil && len(sig) > 0 && len(sigs) < maxSignatures {
				sigs = append(sigs, sig)
			}
		}
	}
	switch {
	case stamp == "":
		return "", nil, fmt.Errorf("%w: no timestamp", ErrMismatch)
	case len(sigs) == 0:
		return "", nil, fmt.Errorf("%w: no signature of this scheme", ErrMismatch)
	}
	return stamp, sigs, nil
}
