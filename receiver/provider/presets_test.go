package provider_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/receiver/provider"
)

// verifierOf is a preset's verifier with one secret.
func verifierOf(t testing.TB, name string, secrets ...string) provider.Verifier {
	t.Helper()
	p, ok := provider.Lookup(name)
	if !ok {
		t.Fatal(name)
	}
	v, err := p.NewVerifier(provider.Settings{Secrets: secrets})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || want == nil && err != nil {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// TestLists: where several signatures may stand, one good one is enough, and a
// malformed one spoils nothing.
func TestLists(t *testing.T) {
	known := vectors(t)
	ways := deliveries(known)
	known["svix"] = known["standard-webhooks/svix/resend"]
	for name, forms := range map[string]map[string]error{
		"paddle": {
			"ts=1710929255;h1=zz;h1={sig}": nil, "ts=1710929255;h1={sig};h1=00": nil, "ts=1710929255; h1={sig}": nil,
			"ts=1710929255;h2={sig}": provider.ErrMismatch, "ts=1;ts=1710929255;h1={sig}": provider.ErrMismatch, "h1={sig}": provider.ErrMismatch,
		},
		"standard-webhooks/svix/resend": {
			"v1,AAAA v1,{sig}": nil, "v2,x v1,{sig} v1,": nil, "v1,{sig}\tx": provider.ErrMismatch,
			"v2,{sig}": provider.ErrMismatch, "{sig}": provider.ErrMismatch, "v1a,{sig}": provider.ErrMismatch,
		},
		"mercadopago-lower": {
			"v1={sig},ts=1742505638683": nil, "ts=1742505638683, v1={sig}": nil, "ts=1742505638683,v2={sig}": provider.ErrMismatch,
		},
		"slack-docs": {"v0={sig}": nil, "v1={sig}": provider.ErrMismatch, "V0={sig}": provider.ErrMismatch, "v0=": provider.ErrMismatch},
	} {
		v, d := known[name], ways[name]
		verifier, err := lookup(t, d.preset).NewVerifier(d.settings)
		if err != nil {
			t.Fatal(err)
		}
		header := ""
		for i := 0; i < len(d.header); i += 2 {
			if strings.Contains(d.header[i+1], "{sig}") {
				header = d.header[i]
			}
		}
		for form, want := range forms {
			r := d.request(v)
			r.Header.Set(header, strings.ReplaceAll(form, "{sig}", v.Expected))
			wantErr(t, name+" "+form, verifier.Verify(r), want)
		}
	}
	// No list is endless.
	v, d := known["standard-webhooks/svix/resend"], ways["standard-webhooks/svix/resend"]
	verifier, _ := lookup(t, d.preset).NewVerifier(d.settings)
	r := d.request(v)
	r.Header.Set("Webhook-Signature", strings.Repeat("v1,AAAA ", 1000)+"v1,"+v.Expected)
	wantErr(t, "a thousand signatures", verifier.Verify(r), provider.ErrMismatch)
}

func lookup(t testing.TB, name string) provider.Preset {
	t.Helper()
	p, ok := provider.Lookup(name)
	if !ok {
		t.Fatal(name)
	}
	return p
}

// TestMercadoPagoEitherCase: the id is signed as it is or in lower case.
func TestMercadoPagoEitherCase(t *testing.T) {
	known := vectors(t)
	upper := deliveries(known)["mercadopago-asis"]
	verifier, err := lookup(t, "mercadopago").NewVerifier(upper.settings)
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, "upper case, lower signed", verifier.Verify(upper.request(known["mercadopago-lower"])), nil)
	lower := deliveries(known)["mercadopago-lower"]
	wantErr(t, "lower case, upper signed", verifier.Verify(lower.request(known["mercadopago-asis"])), provider.ErrMismatch)
}

// TestWhatsAppEscapes: the escaped form that Meta sends is what it signs.
func TestWhatsAppEscapes(t *testing.T) {
	v := vectors(t)["whatsapp"]
	r := deliveries(vectors(t))["whatsapp"].request(v)
	r.Body = []byte(strings.ReplaceAll(v.Signed, `\u00e9`, "é"))
	wantErr(t, "decoded", verifierOf(t, "whatsapp", "app_secret").Verify(r), provider.ErrMismatch)
}

// TestSendGridLineEnd: the CRLF at the end is signed.
func TestSendGridLineEnd(t *testing.T) {
	known := vectors(t)
	d := deliveries(known)["sendgrid"]
	for _, end := range []string{"", "\n"} {
		r := d.request(known["sendgrid"])
		r.Body = []byte(strings.TrimSuffix(string(r.Body), "\r\n") + end)
		wantErr(t, "other line end", verifierOf(t, "sendgrid", known["sendgrid"].Key).Verify(r), provider.ErrMismatch)
	}
}

// TestEvolutionTokens: the last attempts come after the token's own end; another
// algorithm, a token of the day before and one of tomorrow are refused.
func TestEvolutionTokens(t *testing.T) {
	known := vectors(t)
	d := deliveries(known)["evolution-jwt"]
	verifier := verifierOf(t, "evolution", "my-jwt-key")
	for after, want := range map[time.Duration]error{
		0: nil, 22 * time.Minute: nil, 46 * time.Minute: provider.ErrMismatch, -46 * time.Minute: provider.ErrMismatch,
	} {
		r := d.request(known["evolution-jwt"])
		r.Now = at.Add(after)
		wantErr(t, after.String(), verifier.Verify(r), want)
	}
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"iat":1700000000}`))
	for _, token := range []string{
		"", "Bearer", "Bearer x", "Bearer a.b.c", "Basic " + known["evolution-jwt"].Signed + "." + known["evolution-jwt"].Expected,
		"Bearer " + none + "." + claims + ".", "Bearer " + none + "." + claims + "." + known["evolution-jwt"].Expected,
		"Bearer " + known["evolution-jwt"].Signed + "." + known["evolution-jwt"].Expected + "=",
	} {
		r := d.request(known["evolution-jwt"])
		r.Header.Set("Authorization", token)
		err := verifier.Verify(r)
		if !errors.Is(err, provider.ErrMismatch) && !errors.Is(err, provider.ErrMissing) {
			t.Errorf("%q: %v", token, err)
		}
	}
	static, err := lookup(t, "evolution").NewVerifier(provider.Settings{Scheme: "static", Header: "x-mine", Secrets: []string{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, "static", static.Verify(&provider.Request{Header: http.Header{"X-Mine": {"s"}}}), nil)
	wantErr(t, "static, wrong", static.Verify(&provider.Request{Header: http.Header{"X-Mine": {"t"}}}), provider.ErrMismatch)
}

// TestGitlabModes: a secret serves its own scheme, and a signed delivery is not
// saved by the token beside it.
func TestGitlabModes(t *testing.T) {
	known := vectors(t)
	v, d := known["gitlab-signing-token"], deliveries(known)["gitlab-signing-token"]
	both := verifierOf(t, "gitlab", "plain", "whsec_"+v.Key)
	wantErr(t, "signed", both.Verify(d.request(v)), nil)
	r := d.request(v)
	r.Header.Set("X-Gitlab-Token", "plain")
	r.Body = []byte("{}")
	wantErr(t, "forged body, good token", both.Verify(r), provider.ErrMismatch)
	wantErr(t, "token", both.Verify(&provider.Request{Header: http.Header{"X-Gitlab-Token": {"plain"}}}), nil)
	wantErr(t, "signing token as token", both.Verify(&provider.Request{Header: http.Header{"X-Gitlab-Token": {"whsec_" + v.Key}}}), provider.ErrMismatch)
}

// TestEd25519Keys: the second scheme of Standard Webhooks.
func TestEd25519Keys(t *testing.T) {
	key := ed25519.NewKeyFromSeed([]byte("0123456789abcdef0123456789abcdef"))
	v := verifierOf(t, "standard-webhooks", "whpk_"+base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey)))
	sig := base64.StdEncoding.EncodeToString(ed25519.Sign(key, []byte("msg_1.1700000000.{}")))
	r := &provider.Request{Now: at, Body: []byte("{}"), Header: http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {"1700000000"}, "Webhook-Signature": {"v1,AAAA v1a," + sig}}}
	wantErr(t, "v1a", v.Verify(r), nil)
	r.Header.Set("Webhook-Signature", "v1,"+sig)
	wantErr(t, "v1a as v1", v.Verify(r), provider.ErrMismatch)
}

// TestSecretsOfTheWrongKind are refused at the start, not met by the sender.
func TestSecretsOfTheWrongKind(t *testing.T) {
	for _, test := range []struct{ preset, secret string }{
		{"svix", "whsec_not base64!"},
		{"adyen", "no hex"},
		{"sendgrid", "no-key-at-all"},
		{"sendgrid", vectors(t)["woovi-rsa"].Key}, // RSA, not ECDSA
		{"discord", "abcd"},
		{"woovi", vectors(t)["woovi-rsa"].Key[:len(vectors(t)["woovi-rsa"].Key)-40]},
		{"stripe", "whsec_x\n"},
		{"stripe", ""},
	} {
		_, err := lookup(t, test.preset).NewVerifier(provider.Settings{Secrets: []string{test.secret}})
		wantErr(t, test.preset, err, provider.ErrConfig)
		if test.secret != "" && err != nil && strings.Contains(err.Error(), test.secret) {
			t.Errorf("%s: the error prints the secret", test.preset)
		}
	}
}

// TestSettingsThatNothingReads are refused: who writes one believes in it.
func TestSettingsThatNothingReads(t *testing.T) {
	public := vectors(t)["sendgrid"].Key
	for _, test := range []struct {
		preset   string
		settings provider.Settings
		want     error
	}{
		{"stripe", provider.Settings{Secrets: []string{"s"}, Keys: []string{public}}, provider.ErrConfig},
		{"stripe", provider.Settings{Secrets: []string{"s"}, ID: "x"}, provider.ErrConfig},
		{"stripe", provider.Settings{Secrets: []string{"s"}, KeysURL: "https://example.com"}, provider.ErrConfig},
		{"github", provider.Settings{Secrets: []string{"s"}, Token: "x"}, provider.ErrConfig},
		{"github", provider.Settings{Secrets: []string{"s"}, Header: "X"}, provider.ErrConfig},
		{"github", provider.Settings{Secrets: []string{"s"}, Over: "air"}, provider.ErrConfig},
		{"sendgrid", provider.Settings{Keys: []string{public}}, nil},
		{"whatsapp", provider.Settings{Secrets: []string{"s"}, Token: "x"}, nil},
		{"vtex", provider.Settings{Secrets: []string{"s"}, Header: "X"}, nil},
		{"github", provider.Settings{Scheme: "ecdsa", Keys: []string{public}}, nil},
	} {
		_, err := lookup(t, test.preset).NewVerifier(test.settings)
		wantErr(t, test.preset, err, test.want)
	}
}

// TestOwnSchemes: any source may bring its own verification.
func TestOwnSchemes(t *testing.T) {
	key := ed25519.NewKeyFromSeed([]byte("0123456789abcdef0123456789abcdef"))
	public := hex.EncodeToString(key.Public().(ed25519.PublicKey))
	body := []byte(`{"a":1}`)
	signedContent := "1700000000.POST./hooks/x.x-1.7." + string(body)
	request := func(headers ...string) *provider.Request {
		r := &provider.Request{Method: "POST", Target: "/hooks/x?n=7", Host: "h", Body: body, Now: at, Header: http.Header{}}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Add(headers[i], headers[i+1])
		}
		return r
	}
	template := provider.Settings{
		Scheme: "ed25519", Header: "X-Sig", Encoding: "base64url", Signed: "{timestamp}.{method}.{path}.{header:X-Id}.{query:n}.{body}", Timestamp: "X-Time", Secrets: []string{public},
	}
	good := base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(signedContent)))
	for _, test := range []struct {
		name     string
		settings provider.Settings
		request  *provider.Request
		want     error
	}{
		{"template", template, request("X-Sig", good, "X-Time", "1700000000", "X-Id", "x-1"), nil},
		{"template, other id", template, request("X-Sig", good, "X-Time", "1700000000", "X-Id", "x-2"), provider.ErrMismatch},
		{"template, no id", template, request("X-Sig", good, "X-Time", "1700000000"), provider.ErrMissing},
		{"template, old", template, request("X-Sig", good, "X-Time", "1699990000", "X-Id", "x-1"), provider.ErrMismatch},
		{"template, no time", template, request("X-Sig", good, "X-Id", "x-1"), provider.ErrMissing},
		{"basic", provider.Settings{Scheme: "basic", Secrets: []string{"u:p"}}, request("Authorization", "Basic dTpw"), nil},
		{"basic, wrong", provider.Settings{Scheme: "basic", Secrets: []string{"u:q"}}, request("Authorization", "Basic dTpw"), provider.ErrMismatch},
		{"basic, bearer", provider.Settings{Scheme: "basic", Secrets: []string{"u:p"}}, request("Authorization", "Bearer u:p"), provider.ErrMismatch},
		{"bearer", provider.Settings{Scheme: "bearer", Secrets: []string{"t"}}, request("Authorization", "bearer t"), nil},
		{"static", provider.Settings{Scheme: "static", Header: "X-T", Secrets: []string{"t"}}, request("X-T", "t"), nil},
		{"static, twice", provider.Settings{Scheme: "static", Header: "X-T", Secrets: []string{"t"}}, request("X-T", "t", "X-T", "t"), provider.ErrMismatch},
		{"query", provider.Settings{Scheme: "query", Header: "n", Secrets: []string{"7"}}, request(), nil},
		{"query, wrong", provider.Settings{Scheme: "query", Header: "n", Secrets: []string{"8"}}, request(), provider.ErrMismatch},
		{"sha1", provider.Settings{Scheme: "hmac-sha1", Header: "X", Prefix: "sha1=", Secrets: []string{"apiKey"}}, nil, nil},
	} {
		if test.request == nil {
			test.request = request("X", "sha1=38114af54396acbba342ffa5076458ef8f0486c4")
			test.request.Body = []byte("foo=bar&bar=baz&baz=foo")
		}
		v, err := provider.Generic(withTolerance(test.settings))
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		wantErr(t, test.name, v.Verify(test.request), test.want)
	}
	for _, s := range []provider.Settings{
		{Scheme: "hmac-sha256", Signed: "{body}.x"},
		{Scheme: "hmac-sha256", Signed: "{nope}"},
		{Scheme: "hmac-sha256", Signed: "{body"},
		{Scheme: "hmac-sha256", Signed: "x}{body}"},
		{Scheme: "hmac-sha256", Signed: "{timestamp}.{body}"},
		{Scheme: "hmac-sha256", Timestamp: "X"},
		{Scheme: "hmac-sha256", SecretEncoding: "rot13"},
		{Scheme: "hmac-sha256", SecretEncoding: "hex"},
		{Scheme: "basic"},
		{Scheme: "rsa"},
	} {
		s.Secrets = []string{"no colon"}
		_, err := provider.Generic(withTolerance(s))
		wantErr(t, s.Scheme+" "+s.Signed, err, provider.ErrConfig)
	}
}

func withTolerance(s provider.Settings) provider.Settings {
	s.Tolerance = time.Minute
	return s
}
