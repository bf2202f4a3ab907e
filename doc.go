// Package hookonce holds the words that the parts of Hookonce share: events,
// idempotency keys, claims and outbox entries. It imports the standard library
// only.
//
// Hookonce makes every webhook take effect once. An event goes through it like
// this:
//
//	provider ──POST──▶ receiver ──claim + outbox──▶ store     answers 2xx here
//	                      │ publisher (confirms, message id = key)
//	                      ▼
//	                   RabbitMQ ──▶ consumer ──inbox──▶ effects
//
// The receiver claims the event's [Key] and writes the event to the store's
// outbox in one atomic step; a second delivery of the same key is a
// [Duplicate], gets the first answer and publishes nothing. The publisher
// empties the outbox into RabbitMQ; the consumer's inbox is the second check,
// behind which each effect runs once.
//
// States of a claim: free, then claimed (by [Claim]), then free again when its
// TTL has ended. States of an outbox entry: pending, then settled, which
// removes it. States of an event in a consumer group's inbox: running, then
// done, retrying or dead; retrying and dead run again.
//
// Start with the packages receiver, publisher and consumer, or run the program
// cmd/hookonce.
package hookonce
