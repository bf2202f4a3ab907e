package provider

func hotmart() Preset {
	return Preset{
		Name: "hotmart", Title: "Hotmart (webhook 2.0)", Confidence: "low",
		Docs:     "https://developers.hotmart.com/docs/en/2.0.0/webhook/about-webhook/",
		Verifies: "X-HOTMART-HOTTOK, a static token; the body is not signed",
		Secrets:  "the hottok of the account",
		Trap:     "purchase.transaction is shared by all events of a purchase (approved, refunded, chargeback)",
		Verifier: headerSecret("X-Hotmart-Hottok"),
		Keys:     []string{"json:id"},
		Types:    []string{"json:event"},
		Created:  "json:creation_date", Entity: "json:data.purchase.transaction", Version: "json:creation_date",
		Sample: tokenSample("X-HOTMART-HOTTOK",
			`{"id":"{id}","event":"PURCHASE_APPROVED","version":"2.0.0","creation_date":{ms},"data":{"purchase":{"transaction":"HP{id}"}}}`),
	}
}
