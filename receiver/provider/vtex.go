package provider

import "github.com/hookonce/hookonce"

func vtex() Preset {
	return Preset{
		Name: "vtex", Title: "VTEX Orders Hook", Confidence: "medium",
		Docs:     "https://developers.vtex.com/docs/guides/orders-feed",
		Verifies: "a header that you name in the hook's configuration (verify.header; X-Hookonce-Token by default); the body is not signed",
		Secrets:  "the value of that header",
		Trap:     "one order passes many states, and may pass one twice: OrderId alone, or with State, merges them. Only 200 within 5 s counts.",
		Takes:    []string{"header"},
		Verifier: headerSecret("X-Hookonce-Token"),
		Keys:     []string{"json:{Origin.Account}:{OrderId}:{State}:{CurrentChange}", "json::{OrderId}:{State}:{CurrentChange}"},
		Types:    []string{"json:State"},
		Created:  "json:CurrentChange", Entity: "json:OrderId", Version: "json:CurrentChange",
		Probe: func(r *Request, _ Settings) (Reply, bool) {
			return Reply{Answer: hookonce.Answer{Status: 200}}, onlyMembers(r.Body, "hookConfig") && text(r.Body, "hookConfig") == "ping"
		},
		Status: 200,
		Sample: tokenSample("X-Hookonce-Token", `{"Domain":"Marketplace","OrderId":"v{id}-01","State":"payment-approved",`+
			`"LastState":"payment-pending","CurrentChange":"{time}","Origin":{"Account":"hookonce","Key":"k"}}`),
	}
}
