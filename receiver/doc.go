// Package receiver is the HTTP side: it verifies a delivery, finds its
// idempotency key, claims the key together with an outbox entry, and answers.
//
//	rc, err := receiver.New(receiver.Config{
//		Sources: []receiver.Source{{Name: "stripe", Provider: "stripe", Secrets: []string{secret}}},
//		Store:   store, // Redis, Postgres, SQLite
//		Relay:   relay, // publishes what was claimed
//	})
//	server := receiver.NewHTTPServer("127.0.0.1:8080", rc.Handler())
//
// A request passes these steps, and ends at the first that refuses it:
//
//	shed      too many requests in work            503
//	read      too large, bad encoding              413, 415, 400
//	handshake what a provider asks before it sends success, 403
//	verify    signature                            401; 503 when ours is the fault
//	split     several events in one request        413 for too many
//	identify  type, filters, key, schema           success for filtered, 400
//	claim     one operation on the store           success, 422, 503
//
// From split on, each event of a request goes its own way: known ones are
// duplicates, new ones are published, what is wrong with one is parked and does
// not concern the others. The request is answered when all are settled.
//
// Nothing before the claim leaves a trace in the store: a forged, keyless,
// oversized or unreadable request cannot block the real event. The claim is
// detached from the request, so a sender that hangs up changes nothing.
//
// A duplicate gets the first delivery's answer. When the store cannot tell
// whether a key is known, the source's OnStoreDown decides: publish at once,
// with the broker's confirm, and leave it to the consumer's inbox to remove
// duplicates; or ask the sender to come again.
package receiver
