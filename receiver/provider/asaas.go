package provider

import "time"

func asaas() Preset {
	return Preset{
		Name: "asaas", Title: "Asaas", Confidence: "high",
		Docs:     "https://docs.asaas.com/docs/receba-eventos-do-asaas-no-seu-endpoint-de-webhook",
		Verifies: "asaas-access-token, a static token; the body is not signed",
		Secrets:  "the authToken of the webhook",
		Trap: "The id holds an & (evt_…&368604920) and must be taken whole; payment.id is shared by all events of a payment. Only 200 counts, " +
			"and after 15 failures the whole queue is paused: what has no key is parked, not refused.",
		Verifier: headerSecret("Asaas-Access-Token"),
		Keys:     []string{"json:id"},
		Types:    []string{"json:event"},
		Created:  "json:dateCreated", Entity: "json:payment.id", Version: "json:dateCreated",
		Status: 200, ParkNoKey: true,
		Retention: 45 * 24 * time.Hour, // kept for 14 days, and a queue may be paused
		Sample: tokenSample("asaas-access-token",
			`{"id":"evt_{id}&368604920","event":"PAYMENT_RECEIVED","dateCreated":"2026-12-01 12:00:00","payment":{"id":"pay_{id}"}}`),
	}
}

// tokenSample is the sample of a provider that sends a secret in a header.
func tokenSample(header, body string) Sample {
	return Sample{
		Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
		Body: body, Unsigned: true,
		Sign: func(d *Draft) { d.Header.Set(header, d.Secret) },
	}
}
