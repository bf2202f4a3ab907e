package provider_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/recipe"
	"github.com/hookonce/hookonce/receiver/provider"
)

const (
	bodyB03 = `{"type":"message.new","id":"B03-1"}`
	sigB03  = "11478d131f59aacde59ca74d93ec1ec5c581dfeae7b6858cb0dfcde5978290cd"
	keyB03  = "stream_B03"
)

func encode64(t testing.TB, enc *base64.Encoding, sig string) string {
	raw, err := hex.DecodeString(sig)
	if err != nil {
		t.Fatal(err)
	}
	return enc.EncodeToString(raw)
}

func TestGeneric(t *testing.T) {
	hmac := func(s provider.Settings) provider.Settings {
		s.Scheme = provider.SchemeHMACSHA256
		if s.Secrets == nil {
			s.Secrets = []string{"other", keyB03}
		}
		return s
	}
	std := encode64(t, base64.StdEncoding, sigB03)
	prefixed := hmac(provider.Settings{Prefix: "sha256=", Header: "x-hub-signature-256"})
	coded := hmac(provider.Settings{Encoding: "base64"})
	tests := []struct {
		name          string
		settings      provider.Settings
		header, value string
		body          string
		want          error
	}{
		{"none", provider.Settings{Scheme: provider.SchemeNone, Secrets: []string{""}}, "", "", "x", nil},
		{"hex", hmac(provider.Settings{}), "X-Signature", sigB03, bodyB03, nil},
		{"upper hex", hmac(provider.Settings{}), "X-Signature", strings.ToUpper(sigB03), bodyB03, nil},
		{"other body", hmac(provider.Settings{}), "X-Signature", sigB03, bodyB03 + " ", provider.ErrMismatch},
		{"other secret", hmac(provider.Settings{Secrets: []string{"other"}}), "X-Signature", sigB03, bodyB03, provider.ErrMismatch},
		{"no header", hmac(provider.Settings{}), "", "", bodyB03, provider.ErrMissing},
		{"empty header", hmac(provider.Settings{}), "X-Signature", "", bodyB03, provider.ErrMissing},
		{"unexpected prefix", hmac(provider.Settings{}), "X-Signature", "sha256=" + sigB03, bodyB03, provider.ErrMismatch},
		{"prefix", prefixed, "X-Hub-Signature-256", "sha256=" + sigB03, bodyB03, nil},
		{"prefix lacking", prefixed, "X-Hub-Signature-256", sigB03, bodyB03, provider.ErrMismatch},
		{"prefix in other case", prefixed, "X-Hub-Signature-256", "SHA256=" + sigB03, bodyB03, provider.ErrMismatch},
		{"short", hmac(provider.Settings{}), "X-Signature", sigB03[:63], bodyB03, provider.ErrMismatch},
		{"long", hmac(provider.Settings{}), "X-Signature", sigB03 + "00", bodyB03, provider.ErrMismatch},
		{"space", hmac(provider.Settings{}), "X-Signature", " " + sigB03, bodyB03, provider.ErrMismatch},
		{"base64", coded, "X-Signature", std, bodyB03, nil},
		{"base64 without padding", coded, "X-Signature", strings.TrimRight(std, "="), bodyB03, provider.ErrMismatch},
		{"base64 of the URL alphabet", coded, "X-Signature", encode64(t, base64.URLEncoding, sigB03), bodyB03, provider.ErrMismatch},
		{"base64 with loose bits", coded, "X-Signature", std[:42] + "1=", bodyB03, provider.ErrMismatch},
		{"hex where base64 is due", coded, "X-Signature", sigB03, bodyB03, provider.ErrMismatch},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v, err := provider.Generic(test.settings)
			if err != nil {
				t.Fatal(err)
			}
			header := http.Header{}
			if test.header != "" {
				header.Set(test.header, test.value)
			}
			err = v.Verify(&provider.Request{Header: header, Body: []byte(test.body)})
			if !errors.Is(err, test.want) || test.want == nil && err != nil {
				t.Fatalf("%v, want %v", err, test.want)
			}
			noSecrets(t, err, []string{keyB03, sigB03})
		})
	}
}

func TestGenericTwoHeaders(t *testing.T) {
	v, err := provider.Generic(provider.Settings{Scheme: provider.SchemeHMACSHA256, Secrets: []string{keyB03}})
	if err != nil {
		t.Fatal(err)
	}
	r := &provider.Request{Header: http.Header{"X-Signature": {sigB03, sigB03}}, Body: []byte(bodyB03)}
	if err := v.Verify(r); !errors.Is(err, provider.ErrMismatch) {
		t.Fatal(err)
	}
}

func TestGenericSettings(t *testing.T) {
	for name, s := range map[string]provider.Settings{
		"no scheme":          {Secrets: []string{keyB03}},
		"unknown scheme":     {Scheme: "hmac-md5", Secrets: []string{keyB03}},
		"unknown encoding":   {Scheme: provider.SchemeHMACSHA256, Encoding: "base32", Secrets: []string{keyB03}},
		"no secret":          {Scheme: provider.SchemeHMACSHA256},
		"newline":            {Scheme: provider.SchemeHMACSHA256, Secrets: []string{keyB03 + "\n"}},
		"secrets never used": {Scheme: provider.SchemeNone, Secrets: []string{keyB03}},
	} {
		_, err := provider.Generic(s)
		if !errors.Is(err, provider.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		noSecrets(t, err, []string{keyB03})
	}
}

func TestPresets(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range provider.All() {
		if seen[p.Name] || p.Title == "" || p.Verifier == nil || len(p.Keys) == 0 || p.Verifies == "" || p.Secrets == "" ||
			p.Trap == "" || p.Sample.Sign == nil || p.Sample.Source == "" || p.Docs == "" && p.Name != "generic" {
			t.Errorf("preset %q is incomplete or there twice", p.Name)
		}
		seen[p.Name] = true
		if p.Confidence != "high" && p.Confidence != "medium" && p.Confidence != "low" {
			t.Errorf("%s: confidence %q", p.Name, p.Confidence)
		}
		for _, text := range slices.Concat(p.Keys, p.Types, []string{p.Created, p.Entity, p.Version}) {
			if strings.HasPrefix(text, "=") {
				continue
			}
			if r, err := recipe.Parse(text); text != "" && (err != nil || !r.FromRequest()) {
				t.Errorf("%s: recipe %q: %v", p.Name, text, err)
			}
		}
		if again, ok := provider.Lookup(p.Name); !ok || again.Title != p.Title {
			t.Errorf("Lookup(%q) fails", p.Name)
		}
	}
	if _, ok := provider.Lookup("nobody"); ok {
		t.Error("Lookup finds nobody")
	}
}

func TestURL(t *testing.T) {
	for want, r := range map[string]provider.Request{
		"https://hooks.example.com/twilio/sms?st=Trezzo%20Sull'Adda": {PublicURL: "https://hooks.example.com", Host: "10.0.0.5:8080", Target: "/twilio/sms?st=Trezzo%20Sull'Adda"},
		"http://10.0.0.5:8080/a%2Fb":                                 {Host: "10.0.0.5:8080", Target: "/a%2Fb"},
		"https://hooks.example.com/x":                                {Host: "hooks.example.com", Target: "/x", TLS: true},
	} {
		if got := r.URL(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// FuzzGenericSignature: only the one MAC is taken.
func FuzzGenericSignature(f *testing.F) {
	f.Add(sigB03, false)
	f.Add(encode64(f, base64.StdEncoding, sigB03), true)
	f.Add("", true)
	f.Fuzz(func(t *testing.T, value string, coded bool) {
		s := provider.Settings{Scheme: provider.SchemeHMACSHA256, Secrets: []string{keyB03}}
		want := strings.EqualFold(value, sigB03)
		if coded {
			s.Encoding = "base64"
			want = value == encode64(t, base64.StdEncoding, sigB03)
		}
		v, err := provider.Generic(s)
		if err != nil {
			t.Fatal(err)
		}
		err = v.Verify(&provider.Request{Header: http.Header{"X-Signature": {value}}, Body: []byte(bodyB03)})
		if (err == nil) != want {
			t.Fatalf("%q: %v", value, err)
		}
	})
}
