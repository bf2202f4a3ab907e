package provider

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	paypalID   = "Paypal-Transmission-Id"
	paypalTime = "Paypal-Transmission-Time"
	paypalSig  = "Paypal-Transmission-Sig"
	paypalCert = "Paypal-Cert-Url"
	paypalAlgo = "Paypal-Auth-Algo"
)

func paypal() Preset {
	return Preset{
		Name: "paypal", Title: "PayPal", Confidence: "medium",
		Docs: "https://developer.paypal.com/api/rest/webhooks/rest/",
		Verifies: "PAYPAL-TRANSMISSION-SIG (RSA, SHA-256 of id|time|webhook id|CRC-32 of the body, base64) with the certificate of a paypal.com " +
			"address, which must be issued for paypal.com",
		Secrets: "nothing: the certificate comes from PayPal (a certificate or public key pins it). verify: { id: … } is your webhook's id",
		Trap: "The body is bound by a CRC-32 only, which is easily forged by who has seen a delivery: its signature is taken once, and money " +
			"matters should look the resource up. PAYPAL-TRANSMISSION-ID and -TIME describe one transmission.",
		NoSecrets: true,
		Tolerance: 4 * 24 * time.Hour, // 25 attempts over 3 days; whether they are signed anew is not documented
		Takes:     []string{"keys", "id"},
		Verifier:  newPaypal,
		Volatile:  map[string]string{"header:Paypal-Transmission-Id": "names one transmission", "header:Paypal-Transmission-Time": "is the time of sending", "header:Paypal-Transmission-Sig": "is a signature"},
		Keys:      []string{"json:id"},
		Guard:     Guard{Recipe: "header:" + paypalSig, Reject: true},
		Types:     []string{"json:event_type"},
		Created:   "json:create_time", Entity: "json:resource.id", Version: "json:create_time",
		Sample: Sample{
			Source: "secrets: [ \"" + testRSAPublic + "\" ]\nverify: { id: \"WH-TEST\" }", Secret: testRSA,
			Body: `{"id":"WH-{id}","event_type":"PAYMENT.CAPTURE.COMPLETED","create_time":"{time}","resource":{"id":"{id}"}}`,
			Sign: func(d *Draft) {
				d.Header.Set(paypalID, "t-"+d.ID)
				d.Header.Set(paypalTime, d.Now.UTC().Format(time.RFC3339))
				d.Header.Set(paypalAlgo, "SHA256withRSA")
				content := paypalContent("t-"+d.ID, d.Header.Get(paypalTime), "WH-TEST", d.Body)
				d.Header.Set(paypalSig, base64.StdEncoding.EncodeToString(d.rsa(content)))
			},
		},
	}
}

func paypalContent(id, at, webhook string, body []byte) string {
	return id + "|" + at + "|" + webhook + "|" + strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)
}

type paypalVerifier struct {
	webhook   string
	tolerance time.Duration
	pinned    keyring
	settings  Settings

	mu    sync.Mutex
	certs map[string]*published[*rsa.PublicKey]
}

func newPaypal(s Settings) (Verifier, error) {
	if s.ID == "" {
		return nil, fmt.Errorf("%w: set verify.id to the id of your webhook", ErrConfig)
	}
	tolerance, err := s.timed()
	if err != nil {
		return nil, err
	}
	v := &paypalVerifier{webhook: s.ID, tolerance: tolerance, settings: s, certs: map[string]*published[*rsa.PublicKey]{}}
	if len(s.all()) > 0 {
		v.pinned, err = newKeyring(s, publicKey(sha256Hash, "rsa"))
	}
	return v, err
}

func (v *paypalVerifier) Credentials() []string { return []string{paypalSig} }

func (v *paypalVerifier) Verify(r *Request) error {
	var values [4]string
	for i, name := range []string{paypalSig, paypalID, paypalTime, paypalAlgo} {
		var err error
		if values[i], err = single(r.Header, name); err != nil {
			return err
		}
	}
	sig, err := fromBase64(values[0])
	at, timeErr := time.Parse(time.RFC3339, values[2])
	switch {
	case err != nil || values[3] != "SHA256withRSA":
		return fmt.Errorf("%w: no base64 of SHA256withRSA", ErrMismatch)
	case strings.Contains(values[1]+values[2], "|"):
		return fmt.Errorf("%w: a | within a part of what is signed", ErrMismatch)
	case timeErr != nil:
		return fmt.Errorf("%w: header %s is no time", ErrMismatch, paypalTime)
	}
	if err := fresh(strconv.FormatInt(at.Unix(), 10), r.Now, v.tolerance); err != nil {
		return err
	}
	ring := v.pinned
	if ring == nil {
		if ring, err = v.certificate(r); err != nil {
			return err
		}
	}
	return ring.verify(r, paypalContent(values[1], values[2], v.webhook, r.Body), nil, sig)
}

// certificate fetches what the request names, from PayPal only: who chooses the
// key, chooses who may sign.
func (v *paypalVerifier) certificate(r *Request) (keyring, error) {
	text, err := single(r.Header, paypalCert)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Port() != "" || !isPaypal(u.Hostname()) || len(text) > 256 {
		return nil, fmt.Errorf("%w: header %s is no address of paypal.com", ErrMismatch, paypalCert)
	}
	v.mu.Lock()
	cert := v.certs[text]
	if cert == nil {
		if len(v.certs) >= 8 {
			clear(v.certs) // a forged address must not fill the memory
		}
		s := v.settings
		s.KeysURL = text
		cert = newPublished(s, "", paypalKey)
		v.certs[text] = cert
	}
	v.mu.Unlock()
	pub, err := cert.get(r.Now, false)
	if err != nil {
		return nil, err
	}
	return keyring{ringOf(pub, sha256Hash)}, nil
}

func isPaypal(host string) bool {
	return host == "paypal.com" || strings.HasSuffix(host, ".paypal.com")
}

// paypalKey is the key of a chain of certificates, the first of which must be
// issued for paypal.com by an authority that this machine trusts.
func paypalKey(chain []byte) (*rsa.PublicKey, error) {
	var certs []*x509.Certificate
	for rest := chain; len(certs) < 8; {
		block, tail := pem.Decode(rest)
		if block == nil {
			break
		}
		rest = tail
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("no certificate")
	}
	between := x509.NewCertPool()
	for _, cert := range certs[1:] {
		between.AddCert(cert)
	}
	leaf := certs[0]
	_, err := leaf.Verify(x509.VerifyOptions{Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil {
		return nil, err
	}
	ours := isPaypal(leaf.Subject.CommonName)
	for _, name := range leaf.DNSNames {
		ours = ours || isPaypal(name)
	}
	key, ok := leaf.PublicKey.(*rsa.PublicKey)
	if !ours || !ok {
		return nil, errors.New("the certificate is not PayPal's")
	}
	return key, nil
}
