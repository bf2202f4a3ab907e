package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/jsonpath"
	"github.com/hookonce/hookonce/receiver/provider"
)

// known tells whether an error is one that the receiver understands.
func known(err error) bool {
	return err == nil || errors.Is(err, provider.ErrMissing) || errors.Is(err, provider.ErrMismatch) || errors.Is(err, provider.ErrConfig)
}

// sampleVerifiers are the verifiers that accept the samples, by preset.
func sampleVerifiers(t testing.TB) map[string]provider.Verifier {
	t.Helper()
	all := map[string]provider.Verifier{}
	for _, p := range provider.All() {
		v, err := p.NewVerifier(sampleSettings(p))
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		all[p.Name] = v
	}
	return all
}

// sampleSettings read what the sample's YAML says; the test of `hookonce send`
// reads the same through the configuration.
func sampleSettings(p provider.Preset) provider.Settings {
	s := provider.Settings{}
	for line := range strings.SplitSeq(p.Sample.Source, "\n") {
		_, quoted, _ := strings.Cut(line, `"`)
		value, _, _ := strings.Cut(quoted, `"`)
		switch {
		case strings.HasPrefix(line, "secrets:"):
			s.Secrets = []string{value}
		case strings.Contains(line, "scheme: hmac-sha256"):
			s.Scheme = "hmac-sha256"
		case strings.Contains(line, "keys:"):
			s.Keys = []string{value}
		case strings.Contains(line, "id:"):
			s.ID = value
		case strings.Contains(line, "token:"):
			s.Token = value
		}
	}
	return s
}

// TestSamplesVerify: each sample is accepted by its own preset and by no other
// that signs.
func TestSamplesVerify(t *testing.T) {
	for name, v := range sampleVerifiers(t) {
		if err := v.Verify(copyOf(t, name, "", at, false)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := v.Verify(copyOf(t, name, "", at, true)); !errors.Is(err, provider.ErrMismatch) {
			t.Errorf("%s, tampered: %v", name, err)
		}
		if err := v.Verify(&provider.Request{Header: http.Header{}, Target: "/", Now: at}); !errors.Is(err, provider.ErrMissing) {
			t.Errorf("%s, empty: %v", name, err)
		}
	}
}

// FuzzVerify changes one header, the body or the URL of a genuine delivery. No
// verifier panics, and none accepts a body that was not signed.
func FuzzVerify(f *testing.F) {
	all := provider.All()
	for i, p := range all {
		r := copyOf(f, p.Name, "", at, false)
		for name, values := range r.Header {
			f.Add(uint8(i), name, values[0], r.Body, r.Target)
			f.Add(uint8(i), name, values[0]+",", append(bytes.Clone(r.Body), ' '), r.Target)
		}
		f.Add(uint8(i), "X", "", []byte(`{"a":1,"a":2}`), "/hooks/x?data.id=1&data.id=2")
	}
	for _, v := range vectors(f) {
		f.Add(uint8(0), "X-Signature", v.Expected, []byte(v.Signed), "/")
	}
	verifiers := sampleVerifiers(f)
	genuine := map[string]*provider.Request{} // to sign one for each run takes too long
	for _, p := range all {
		genuine[p.Name] = copyOf(f, p.Name, "", at, false)
	}
	f.Fuzz(func(t *testing.T, which uint8, header, value string, body []byte, target string) {
		p := all[int(which)%len(all)]
		r := *genuine[p.Name]
		r.Header = r.Header.Clone()
		r.Header.Set(header, value)
		r.Body, r.Target = body, target
		err := verifiers[p.Name].Verify(&r)
		if !known(err) {
			t.Fatalf("%s: %v", p.Name, err)
		}
		if err == nil && !p.Sample.Unsigned && p.Name != "adyen" && p.Name != "mailgun" && p.Name != "stone-openbank" &&
			p.Name != "twilio" && !bytes.Equal(body, genuine[p.Name].Body) {
			t.Fatalf("%s accepted another body: %q", p.Name, body)
		}
		if p.Probe != nil {
			p.Probe(&r, provider.Settings{Token: "x"})
		}
		if p.Handshake != nil && err == nil {
			p.Handshake(&r, provider.Settings{})
		}
	})
}

// FuzzSplit: items are parts of the body, no more than allowed, and what their
// parents say is a JSON object.
func FuzzSplit(f *testing.F) {
	for _, p := range provider.All() {
		f.Add(copyOf(f, p.Name, "", at, false).Body)
	}
	for _, text := range []string{
		`{"entry":[{"id":1,"changes":[{"value":{"messages":[1,{}],"statuses":null}}]}]}`, `{"pix":[{"devolucoes":[{}]}],"recs":[1]}`, `[[],{},"x"]`,
		`{"notificationItems":[{"NotificationRequestItem":7}]}`, `{"id":"O","charges":[{"id":"a\",\"b","status":"c"}]}`, "null", "7", `{"update_id":1}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if jsonpath.ValidUnique(body) != nil {
			return
		}
		for _, p := range provider.All() {
			if p.Split == nil {
				continue
			}
			items, _, err := p.Split(body, 50)
			if err != nil && !errors.Is(err, provider.ErrShape) && !errors.Is(err, provider.ErrTooMany) {
				t.Fatalf("%s: %v", p.Name, err)
			}
			if len(items) > 50 {
				t.Fatalf("%s: %d items", p.Name, len(items))
			}
			for _, item := range items {
				if !bytes.Contains(body, item.Raw) || !json.Valid(bytes.TrimPrefix(item.Raw, []byte("\xef\xbb\xbf"))) {
					t.Fatalf("%s: item %q is no part of %q", p.Name, item.Raw, body)
				}
				var context map[string]any
				if item.Context != nil && json.Unmarshal(item.Context, &context) != nil {
					t.Fatalf("%s: context %q", p.Name, item.Context)
				}
			}
		}
	})
}

// FuzzSettings: no setting makes a verifier that panics, and an error of the
// settings is told as one.
func FuzzSettings(f *testing.F) {
	f.Add("hmac-sha512", "X-Sig", "base64", "v=", "{timestamp}.{url}{header:A}{query:b}.{body}", "X-Time", "hex", "00")
	f.Add("rsa", "", "hex", "", "{body}", "", "", vectors(f)["woovi-rsa"].Key)
	f.Add("ecdsa", "", "", "", "", "", "", vectors(f)["sendgrid"].Key)
	f.Add("ed25519", "", "", "", "{method}{path}", "", "", vectors(f)["discord"].Key)
	f.Add("basic", "", "", "", "", "", "", "a:b")
	genuine := copyOf(f, "generic", "", at, false)
	genuine.Header.Set("X-Time", "1700000000")
	f.Fuzz(func(t *testing.T, scheme, header, encoding, prefix, signed, timestamp, secretEncoding, secret string) {
		s := provider.Settings{
			Scheme: scheme, Header: header, Encoding: encoding, Prefix: prefix, Signed: signed, Timestamp: timestamp,
			SecretEncoding: secretEncoding, Secrets: []string{secret}, Tolerance: provider.DefaultTolerance,
		}
		v, err := provider.Generic(s)
		if err != nil {
			if !errors.Is(err, provider.ErrConfig) {
				t.Fatal(err)
			}
			return
		}
		r := *genuine
		if err := v.Verify(&r); !known(err) {
			t.Fatal(err)
		}
	})
}
