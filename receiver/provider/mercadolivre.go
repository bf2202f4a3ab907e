package provider

func mercadolivre() Preset {
	return Preset{
		Name: "mercadolivre", Title: "Mercado Livre", Confidence: "low",
		Docs:     "https://developers.mercadolivre.com.br/pt_br/produto-receba-notificacoes",
		Verifies: "?token=… in the URL that you register, a static token of yours: the provider itself authenticates nothing",
		Secrets:  "the token in the registered URL",
		Trap: "attempts, sent and received change on each attempt; topic and resource are shared by all changes of a resource. Let the effect " +
			"look the resource up. Only 200 within 500 ms counts.",
		Verifier: querySecret("token"),
		Volatile: map[string]string{"json:attempts": "counts attempts", "json:sent": "is the time of sending", "json:received": "is the time of receiving"},
		Keys:     []string{"json:_id"},
		Types:    []string{"json:topic"},
		Created:  "json:sent", Entity: "json:resource",
		Status: 200,
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body:  `{"_id":"{id}","topic":"orders_v2","resource":"/orders/2000","user_id":1,"application_id":2,"attempts":1,"sent":"{time}"}`,
			Query: "token={secret}", Unsigned: true,
			Sign: func(*Draft) {},
		},
	}
}
