// Package publisher brings events to RabbitMQ: at least once under one message
// id, normally once.
//
// [Publisher] publishes single events with confirms. [Relay] empties the outbox
// through it: what the receiver has just claimed is published straight from
// memory, everything else (after a crash, an outage, or of an instance that
// died) is read from the store. An entry leaves the outbox only when the broker
// has confirmed it in a durable queue.
//
//	pub := publisher.New(publisher.Config{URLs: []string{"amqp://127.0.0.1/"}})
//	if err := pub.Start(ctx); err != nil { … }
//	relay := publisher.NewRelay(publisher.RelayConfig{Outbox: store, Sender: pub})
//	go relay.Run(ctx)
//	…
//	relay.Offer(entry) // after each claim; never blocks
//
// Stop in the order receiver, relay, publisher: the relay's Run ends once what
// is in flight has been settled, for which it needs the publisher.
package publisher
