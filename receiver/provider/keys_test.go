package provider_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/hookonce/hookonce/receiver/provider"
)

// rsaKey is a key of a provider that rotates its keys.
func rsaKey(t testing.TB) (*rsa.PrivateKey, string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, base64.StdEncoding.EncodeToString(der)
}

// keyServer publishes keys, counts how often it is asked, and may be away.
type keyServer struct {
	*httptest.Server
	asked atomic.Int32
	away  atomic.Bool
	list  atomic.Pointer[[]byte]
}

func newKeyServer(t *testing.T, list []byte) *keyServer {
	t.Helper()
	s := &keyServer{}
	s.list.Store(&list)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.asked.Add(1)
		if s.away.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write(*s.list.Load())
	}))
	t.Cleanup(s.Close)
	return s
}

func jwks(t *testing.T, keys map[string]*rsa.PrivateKey) []byte {
	t.Helper()
	var set jose.JSONWebKeySet
	for kid, key := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: &key.PublicKey, KeyID: kid, Use: "sig", Algorithm: "RS256"})
	}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// copyOf is one copy of a provider's sample as a verifier sees it.
func copyOf(t testing.TB, name, secret string, at time.Time, tamper bool) *provider.Request {
	t.Helper()
	p, ok := provider.Lookup(name)
	if !ok {
		t.Fatal(name)
	}
	target, _ := url.Parse("http://hooks.example.com/hooks/" + name)
	d, err := p.Sample.Copy(target, "X1", secret, at, at, tamper)
	if err != nil {
		t.Fatal(err)
	}
	return &provider.Request{
		Method: http.MethodPost, Target: d.URL.RequestURI(), Host: d.URL.Host, Header: d.Header, Body: d.Body, Now: at,
	}
}

var at = time.Unix(1700000000, 0)

// TestKeysRotate: published keys are fetched once, kept while their address is
// away, and fetched anew when a delivery names one that is not among them; a
// forged key id does not make us ask for each request.
func TestKeysRotate(t *testing.T) {
	first, firstDER := rsaKey(t)
	second, secondDER := rsaKey(t)
	s := newKeyServer(t, jwks(t, map[string]*rsa.PrivateKey{"hookonce-test": first}))
	preset, _ := provider.Lookup("pagarme")
	v, err := preset.NewVerifier(provider.Settings{KeysURL: s.URL, Client: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	verify := func(der string, now time.Time) error {
		r := copyOf(t, "pagarme", der, at, false)
		r.Now = now
		return v.Verify(r)
	}
	wantAsked := func(n int32) {
		t.Helper()
		if got := s.asked.Load(); got != n {
			t.Errorf("asked %d times, want %d", got, n)
		}
	}
	for range 3 {
		if err := verify(firstDER, at); err != nil {
			t.Fatal(err)
		}
	}
	wantAsked(1)
	// Forged: one more look, after a minute at the earliest.
	for i := range 5 {
		if err := verify(secondDER, at.Add(2*time.Minute+time.Duration(i)*time.Second)); !errors.Is(err, provider.ErrMismatch) {
			t.Fatal(err)
		}
	}
	wantAsked(2)
	// Rotated.
	list := jwks(t, map[string]*rsa.PrivateKey{"hookonce-test": second})
	s.list.Store(&list)
	if err := verify(secondDER, at.Add(4*time.Minute)); err != nil {
		t.Fatal(err)
	}
	wantAsked(3)
	// Away: what is known stays good, however old.
	s.away.Store(true)
	if err := verify(secondDER, at.Add(5*time.Hour)); err != nil {
		t.Fatal(err)
	}
	wantAsked(4)
}

// TestKeysAway: without keys nothing is verified and nothing refused: the
// sender shall come again.
func TestKeysAway(t *testing.T) {
	s := newKeyServer(t, []byte(`{"keys":[]}`))
	s.away.Store(true)
	for _, name := range []string{"pagarme", "woovi"} {
		preset, _ := provider.Lookup(name)
		v, err := preset.NewVerifier(provider.Settings{KeysURL: s.URL, Client: s.Client()})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := v.Verify(copyOf(t, name, "", at, false)); !errors.Is(err, provider.ErrConfig) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if n := s.asked.Load(); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// TestWooviList: any key of the list will do, in whatever shape it is given.
func TestWooviList(t *testing.T) {
	known := vectors(t)
	second, secondDER := rsaKey(t)
	der, err := x509.MarshalPKIXPublicKey(&second.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := json.Marshal(map[string]any{"public_keys": []any{
		map[string]any{"is_current": true, "public_key": known["woovi-rsa"].Key},
		map[string]any{"is_current": false, "public_key": base64.StdEncoding.EncodeToString(der), "note": "old"},
	}})
	s := newKeyServer(t, list)
	preset, _ := provider.Lookup("woovi")
	v, err := preset.NewVerifier(provider.Settings{KeysURL: s.URL, Client: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(copyOf(t, "woovi", secondDER, at, false)); err != nil {
		t.Error(err)
	}
	official := deliveries(known)["woovi-rsa"].request(known["woovi-rsa"])
	official.Now = at
	if err := v.Verify(official); err != nil {
		t.Error(err)
	}
	// Signed by Woovi, but for somebody else.
	for id, want := range map[string]error{"624f46f9e93f9f521c8308d7": nil, "other": provider.ErrMismatch} {
		v, err := preset.NewVerifier(provider.Settings{KeysURL: s.URL, Client: s.Client(), ID: id})
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(official); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestStone: only Stone's own signature within the encryption counts, by the
// algorithms that Stone uses.
func TestStone(t *testing.T) {
	p, _ := provider.Lookup("stone-openbank")
	public := strings.Split(p.Sample.Source, `"`)[3]
	stoneKey, _ := rsaKey(t)
	s := newKeyServer(t, jwks(t, map[string]*rsa.PrivateKey{"other": stoneKey}))
	settings := provider.Settings{Secrets: []string{p.Sample.Secret}, Keys: []string{public}}
	v, err := p.NewVerifier(settings)
	if err != nil {
		t.Fatal(err)
	}
	first, second := copyOf(t, p.Name, "", at, false), copyOf(t, p.Name, "", at, false)
	if string(first.Body) == string(second.Body) {
		t.Fatal("two attempts have the same body: the sample is no good")
	}
	for _, r := range []*provider.Request{first, second} {
		if err := v.Verify(r); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(r.Plain), `"event_type":"cash_in_pix"`) {
			t.Errorf("plain %s", r.Plain)
		}
	}
	r := copyOf(t, p.Name, "", at, false)
	r.Header.Set("X-Stone-Webhook-Event-Type", "cash_out")
	if err := v.Verify(r); !errors.Is(err, provider.ErrMismatch) {
		t.Errorf("another type in the header: %v", err)
	}
	for name, body := range map[string]string{
		"no box": `{}`, "not encrypted": `{"encrypted_body":"x.y.z"}`, "more": `{"encrypted_body":"x","y":1}`, "none": "", "array": "[]",
	} {
		r := copyOf(t, p.Name, "", at, false)
		r.Body = []byte(body)
		if err := v.Verify(r); !errors.Is(err, provider.ErrMismatch) && !errors.Is(err, provider.ErrMissing) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Everybody can encrypt for us: a JWS by another key, and no JWS at all.
	settings.Keys, settings.KeysURL, settings.Client = nil, s.URL, s.Client()
	if v, err = p.NewVerifier(settings); err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(copyOf(t, p.Name, "", at, false)); !errors.Is(err, provider.ErrMismatch) {
		t.Errorf("signed by a stranger: %v", err)
	}
	// Algorithms are pinned.
	own, err := x509.ParsePKCS1PrivateKey(mustBase64(t, p.Sample.Secret))
	if err != nil {
		t.Fatal(err)
	}
	for _, alg := range []jose.KeyAlgorithm{jose.RSA_OAEP, jose.RSA1_5} {
		box, err := jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: alg, Key: &own.PublicKey}, nil)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := box.Encrypt([]byte("a.b.c"))
		if err != nil {
			t.Fatal(err)
		}
		compact, _ := sealed.CompactSerialize()
		r := copyOf(t, p.Name, "", at, false)
		r.Body, _ = json.Marshal(map[string]string{"encrypted_body": compact})
		if err := v.Verify(r); !errors.Is(err, provider.ErrMismatch) {
			t.Errorf("%s: %v", alg, err)
		}
	}
	for name, s := range map[string]provider.Settings{"no key": {}, "no private key": {Secrets: []string{public}}, "bad public key": {Secrets: []string{p.Sample.Secret}, Keys: []string{"x"}}} {
		if _, err := p.NewVerifier(s); !errors.Is(err, provider.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func mustBase64(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestPaypalCertificates: the key comes from PayPal, or from nowhere.
func TestPaypalCertificates(t *testing.T) {
	preset, _ := provider.Lookup("paypal")
	if _, err := preset.NewVerifier(provider.Settings{}); !errors.Is(err, provider.ErrConfig) {
		t.Errorf("without the webhook's id: %v", err)
	}
	v, err := preset.NewVerifier(provider.Settings{ID: "WH-TEST", Client: &http.Client{Transport: refuses{}}})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]error{
		"":                                     provider.ErrMissing,
		"http://api.paypal.com/cert":           provider.ErrMismatch,
		"https://paypal.com.evil.example/cert": provider.ErrMismatch,
		"https://evil.example/paypal.com":      provider.ErrMismatch,
		"https://evilpaypal.com/cert":          provider.ErrMismatch,
		"https://u@api.paypal.com/cert":        provider.ErrMismatch,
		"https://api.paypal.com:8443/cert":     provider.ErrMismatch,
		"https://api.paypal.com/v1/cert":       provider.ErrConfig, // ours to fetch, and not to be had
	} {
		r := copyOf(t, "paypal", "", at, false)
		if address != "" {
			r.Header.Set("PAYPAL-CERT-URL", address)
		}
		if err := v.Verify(r); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", address, err, want)
		}
	}
	other, err := preset.NewVerifier(provider.Settings{ID: "WH-OTHER", Secrets: []string{strings.Split(preset.Sample.Source, `"`)[1]}})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Verify(copyOf(t, "paypal", "", at, false)); !errors.Is(err, provider.ErrMismatch) {
		t.Errorf("another webhook's delivery: %v", err)
	}
}

type refuses struct{}

func (refuses) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no network") }

// TestOneFetchAtATime: many deliveries that need the keys at once share a
// fetch; and while old keys are renewed, nobody else waits.
func TestOneFetchAtATime(t *testing.T) {
	key, der := rsaKey(t)
	list := jwks(t, map[string]*rsa.PrivateKey{"hookonce-test": key})
	var asked atomic.Int32
	arrived, release := make(chan struct{}, 8), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		arrived <- struct{}{}
		<-release
		_, _ = w.Write(list)
	}))
	defer s.Close()
	v, err := lookup(t, "pagarme").NewVerifier(provider.Settings{KeysURL: s.URL, Client: s.Client()})
	if err != nil {
		t.Fatal(err)
	}
	verify := func(now time.Time) error {
		r := copyOf(t, "pagarme", der, at, false)
		r.Now = now
		return v.Verify(r)
	}
	const many = 20
	done := make(chan error, many)
	for range many {
		go func() { done <- verify(at) }()
	}
	<-arrived
	close(release)
	for range many {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}

	release = make(chan struct{})
	renewed := make(chan error, 1)
	go func() { renewed <- verify(at.Add(2 * time.Hour)) }()
	<-arrived // and not answered yet
	if err := verify(at.Add(2 * time.Hour)); err != nil {
		t.Error(err)
	}
	close(release)
	if err := <-renewed; err != nil {
		t.Error(err)
	}
}
