package provider

import (
	"bytes"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/jsonpath"
)

func efi() Preset {
	return Preset{
		Name: "efi", Title: "Efí (Pix API of the Banco Central)", Confidence: "high",
		Docs: "https://dev.efipay.com.br/docs/api-pix/webhooks",
		Verifies: "?hmac=… in the URL that you register, a static token despite its name; add allow_ips. With mutual TLS at your proxy: " +
			"verify: { scheme: static, header: X-Client-Verify } with the proxy's word as secret, a proxy that always sets it, and a listener " +
			"that only the proxy reaches",
		Secrets: "the token in the registered URL, which ends in ?hmac=TOKEN&ignorar=",
		Trap: "A refund repeats the endToEndId of its payment: the refund's id and status are part of the key, or refunds are lost. txid is " +
			"shared by all payments of a static charge. Several payments come in one request. To refuse the first probe, which has no " +
			"certificate, is your proxy's work.",
		Verifier: querySecret("hmac"),
		Keys: []string{
			"json:{context:endToEndId}:refund:{id}:{status}",
			"json:{endToEndId}:{tipo}:{status}:", // sent by you
			"json:{endToEndId}",
			"json:rec:{idRec}:{status}",
			"json:cobr:{txid}:{idRec}:{status}",
			"json:cobr:{txid}:{status}",
		},
		Types:   []string{"context:item"},
		Created: "json:horario", Entity: "json:txid",
		Split: splitPix, Batches: true,
		Handshake: func(r *Request, _ Settings) (Reply, bool) {
			// What is sent when the URL is registered names no payment.
			body := bytes.TrimSpace(r.Body)
			probe := len(body) == 0 || bytes.Equal(body, []byte("{}")) || onlyMembers(body, "evento", "data_criacao") || onlyMembers(body, "evento")
			return Reply{Answer: hookonce.Answer{Status: 200}}, probe
		},
		Retention: 45 * 24 * time.Hour, // the last step of the published table is day 37
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body:  `{"pix":[{"endToEndId":"E{id}","txid":"t1","chave":"k","valor":"10.00","horario":"{time}"}]}`,
			Query: "hmac={secret}", Unsigned: true,
			Sign: func(*Draft) {},
		},
	}
}

// splitPix takes payments, refunds and recurrences apart. A payment that comes
// again with refunds is told as these refunds.
func splitPix(body []byte, limit int) ([]Item, bool, error) {
	root, ok := jsonpath.Root(body)
	if !ok || root.Kind != jsonpath.Object {
		return nil, false, fmt.Errorf("%w: no JSON object", ErrShape)
	}
	b := &batch{limit: limit}
	lists := 0
	for _, name := range []string{"pix", "recs", "cobsr"} {
		list, _ := root.Get(path(name))
		if list.Kind != jsonpath.Array {
			continue
		}
		lists++
		if err := each(list, func(item jsonpath.Value) error { return b.pix(name, item) }); err != nil {
			return nil, true, err
		}
	}
	if lists == 0 {
		return nil, false, fmt.Errorf("%w: none of pix, recs and cobsr", ErrShape)
	}
	return b.items, true, nil
}

func (b *batch) pix(list string, item jsonpath.Value) error {
	refunds, _ := item.Get(path("devolucoes"))
	if list != "pix" || refunds.Kind != jsonpath.Array || string(bytes.TrimSpace(refunds.Raw[1:len(refunds.Raw)-1])) == "" {
		var context object
		context.text("item", list)
		return b.add(Item{Raw: item.Raw, Context: context.bytes(), Named: true})
	}
	var context object
	context.text("item", "pix.devolucao")
	context.from(item, "endToEndId", "txid", "chave", "valor", "horario")
	return each(refunds, func(refund jsonpath.Value) error {
		return b.add(Item{Raw: refund.Raw, Context: context.bytes(), Named: true})
	})
}
