package provider_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/receiver/provider"
)

const (
	sigFirst = "add268875c77da0b0493b2ae7deba5dabc736b8c4b5a40755158e5471b4c3fe2"
	sigRetry = "20e7277c2d1c32349f22a23356f724319bf2d47433cb81e1fd7ab9cf7bd05066"
	sigOld   = "ff24a7ccd3c7b4a05a2cd5bea6e959055b056db31f4fa776b0c9b7a957f400e6"
	sigNew   = "4ffa12eff85208bdde7aee3b6c4040734ac4be2e3547524a6077483dc584df00"
	sigThin  = "334fffabba20be499d411874564e023a6a10d0cc38207e519b8175e57f860e2c"
	sigB01   = "83551c142da1d11e98d982e32598b09c016d6722662eb3304c7b32b90470ef61"

	bodyTest = `{"id":"evt_test_webhook","object":"event","type":"payment_intent.succeeded"}`
	bodyB05  = `{"id":"evt_B05","object":"event","type":"charge.succeeded"}`
	bodyThin = `{"id":"evt_test_B05thin","object":"v2.core.event","type":"v1.billing.meter.error_report_triggered","related_object":{"id":"mtr_1"}}`
	bodyB01  = `{"z":1e2,"amount":10.00,"note":"caf\u00e9 \/ \u0026 \u003c","id":"evt_B01","type":"invoice.paid"}`
	// bodyB01Dumped is the same event, parsed and written again.
	bodyB01Dumped = `{"amount":10,"id":"evt_B01","note":"café / \u0026 \u003c","type":"invoice.paid","z":100}`
)

func TestStripe(t *testing.T) {
	const testSecret, oldSecret, newSecret = "whsec_test_secret", "whsec_old_B05", "whsec_new_B05"
	both := []string{oldSecret, newSecret}
	tests := []struct {
		name    string
		secrets []string
		header  string
		body    string
		now     int64
		want    error
	}{
		{"first attempt", []string{testSecret}, "t=1492774577,v1=" + sigFirst, bodyTest, 1492774577, nil},
		{"its retry", []string{testSecret}, "t=1492778177,v1=" + sigRetry, bodyTest, 1492778177, nil},
		{"first signature at the retry's time", []string{testSecret}, "t=1492774577,v1=" + sigFirst, bodyTest, 1492778177, provider.ErrMismatch},
		{"retry's signature, first timestamp", []string{testSecret}, "t=1492774577,v1=" + sigRetry, bodyTest, 1492774577, provider.ErrMismatch},
		{"300 s old", []string{testSecret}, "t=1492774577,v1=" + sigFirst, bodyTest, 1492774877, nil},
		{"301 s old", []string{testSecret}, "t=1492774577,v1=" + sigFirst, bodyTest, 1492774878, provider.ErrMismatch},
		{"300 s ahead", []string{testSecret}, "t=1492774577,v1=" + sigFirst, bodyTest, 1492774277, nil},
		{"301 s ahead", []string{testSecret}, "t=1492774577,v1=" + sigFirst, bodyTest, 1492774276, provider.ErrMismatch},
		{"upper case", []string{testSecret}, "t=1492774577,v1=" + strings.ToUpper(sigFirst), bodyTest, 1492774577, nil},
		{"secret without whsec_", []string{"test_secret"}, "t=1492774577,v1=" + sigFirst, bodyTest, 1492774577, provider.ErrMismatch},

		{"B01", []string{"whsec_test_B01"}, "t=1700000000,v1=" + sigB01, bodyB01, 1700000000, nil},
		{"B01 dumped", []string{"whsec_test_B01"}, "t=1700000000,v1=" + sigB01, bodyB01Dumped, 1700000000, provider.ErrMismatch},

		{"B05 old, new", both, "t=1700000000,v1=" + sigOld + ",v1=" + sigNew, bodyB05, 1700000000, nil},
		{"B05 new, old", both, "t=1700000000,v1=" + sigNew + ",v1=" + sigOld, bodyB05, 1700000000, nil},
		{"B05 only old known", []string{oldSecret}, "t=1700000000,v1=" + sigNew + ",v1=" + sigOld, bodyB05, 1700000000, nil},
		{"B05 only new known", []string{newSecret}, "t=1700000000,v1=" + sigOld + ",v1=" + sigNew, bodyB05, 1700000000, nil},
		{"B05 old sent, new known", []string{newSecret}, "t=1700000000,v1=" + sigOld, bodyB05, 1700000000, provider.ErrMismatch},
		{"B05 first not hex", []string{newSecret}, "t=1700000000,v1=zz,v1=" + sigNew, bodyB05, 1700000000, nil},
		{"B05 v0 alone", []string{newSecret}, "t=1700000000,v0=" + sigNew, bodyB05, 1700000000, provider.ErrMismatch},
		{"B05 spaces", both, "t=1700000000, v1=" + sigOld + ", v1=" + sigNew, bodyB05, 1700000000, nil},
		{"B05 timestamp last", both, "v1=" + sigNew + ",t=1700000000", bodyB05, 1700000000, nil},
		{"B05 junk entries", both, ",=,x,t1=2,v2=,t=1700000000,v1,v1=" + sigNew + ",", bodyB05, 1700000000, nil},
		{"B05 empty second secret", []string{newSecret, ""}, "t=1700000000,v1=" + sigNew, bodyB05, 1700000000, nil},
		{"B05 thin", []string{newSecret, "whsec_thin_B05"}, "t=1700000000,v1=" + sigThin, bodyThin, 1700000000, nil},

		{"no header", both, "", bodyB05, 1700000000, provider.ErrMissing},
		{"no timestamp", both, "v1=" + sigNew, bodyB05, 1700000000, provider.ErrMismatch},
		{"two timestamps", both, "t=1700000000,t=1700000001,v1=" + sigNew, bodyB05, 1700000000, provider.ErrMismatch},
		{"no number", both, "t=now,v1=" + sigNew, bodyB05, 1700000000, provider.ErrMismatch},
		{"signed number", both, "t=+1700000000,v1=" + sigNew, bodyB05, 1700000000, provider.ErrMismatch},
		{"huge number", both, "t=4611686018427387903,v1=" + sigNew, bodyB05, 1700000000, provider.ErrMismatch},
		{"over 62 bits", both, "t=99999999999999999999,v1=" + sigNew, bodyB05, 1700000000, provider.ErrMismatch},
		{"cut signature", both, "t=1700000000,v1=" + sigNew[:62], bodyB05, 1700000000, provider.ErrMismatch},
		{"no signature", both, "t=1700000000", bodyB05, 1700000000, provider.ErrMismatch},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v, err := provider.Stripe(provider.Settings{Secrets: test.secrets, Tolerance: provider.DefaultTolerance})
			if err != nil {
				t.Fatal(err)
			}
			header := http.Header{}
			if test.header != "" {
				header.Set("Stripe-Signature", test.header)
			}
			err = v.Verify(&provider.Request{Header: header, Body: []byte(test.body), Now: time.Unix(test.now, 0)})
			if !errors.Is(err, test.want) || test.want == nil && err != nil {
				t.Fatalf("%v, want %v", err, test.want)
			}
			noSecrets(t, err, append(test.secrets, sigNew, sigOld, sigFirst))
		})
	}
}

func TestStripeTwoHeaders(t *testing.T) {
	v, err := provider.Stripe(provider.Settings{Secrets: []string{"whsec_new_B05"}, Tolerance: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	good := "t=1700000000,v1=" + sigNew
	r := &provider.Request{Header: http.Header{"Stripe-Signature": {good, good}}, Body: []byte(bodyB05), Now: time.Unix(1700000000, 0)}
	if err := v.Verify(r); !errors.Is(err, provider.ErrMismatch) {
		t.Fatal(err)
	}
}

func TestStripeSettings(t *testing.T) {
	for name, s := range map[string]provider.Settings{
		"no secret":          {Tolerance: time.Minute},
		"only empty":         {Tolerance: time.Minute, Secrets: []string{"", ""}},
		"newline":            {Tolerance: time.Minute, Secrets: []string{"whsec_new_B05\n"}},
		"white space only":   {Tolerance: time.Minute, Secrets: []string{"  "}},
		"tolerance zero":     {Secrets: []string{"whsec_new_B05"}},
		"tolerance negative": {Tolerance: -1, Secrets: []string{"whsec_new_B05"}},
	} {
		_, err := provider.Stripe(s)
		if !errors.Is(err, provider.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		noSecrets(t, err, []string{"whsec_new_B05"})
	}
}

// noSecrets fails when an error would print what must stay secret.
func noSecrets(t *testing.T, err error, secrets []string) {
	t.Helper()
	for _, s := range secrets {
		if err != nil && s != "" && strings.Contains(err.Error(), s) {
			t.Fatalf("error prints %q", s)
		}
	}
}

// FuzzStripeHeader: nothing but a header with the right timestamp and MAC is
// taken, and no header panics.
func FuzzStripeHeader(f *testing.F) {
	for _, s := range []string{"t=1700000000,v1=" + sigNew, "t=,v1=", ",,=", "t=1700000000,v0=" + sigNew, "v1=" + sigNew + ", t=1700000000"} {
		f.Add(s)
	}
	v, err := provider.Stripe(provider.Settings{Secrets: []string{"whsec_new_B05"}, Tolerance: time.Minute})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, header string) {
		r := &provider.Request{Header: http.Header{"Stripe-Signature": {header}}, Body: []byte(bodyB05), Now: time.Unix(1700000000, 0)}
		err := v.Verify(r)
		if err != nil && !errors.Is(err, provider.ErrMismatch) && !errors.Is(err, provider.ErrMissing) {
			t.Fatal(err)
		}
		if err == nil && (!strings.Contains(strings.ToLower(header), "v1="+sigNew) || !strings.Contains(header, "t=1700000000")) {
			t.Fatalf("%q was accepted", header)
		}
	})
}
