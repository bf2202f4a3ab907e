// Package effect turns the effects of a configuration file into steps of a
// consumer group, so that a team in any language needs no Go:
//
//   - [SQL] writes to the inbox's own database, in the transaction that records
//     the step.
//   - [Email] sends one message over SMTP, under one Message-ID on every try.
//   - [Forward] posts the event's body, under one Idempotency-Key on every try.
//
// [CompileWhen], [CompileOncePer] and [CompileOnlyLatest] make the conditions
// of a step. Everything is compiled at start, and every problem is told at once,
// by the setting it is in: see [Problems].
//
// Parameters are named in a statement (":order_id") and filled from the event:
// "json:order.id", "header:X-Id", "context:contacts.0", "key", "source", "type", "body",
// "received_at", or several JSON paths. A path that is missing is NULL. In a
// template ({{ .json.order.id }}) it is a permanent failure, as no later try
// brings what is not there; in an expression (json.order.total > 0) it is nil.
//
// What a failure of an outside effect means is decided here. Certain not to
// have happened, and tried again: a name that is not found, a refused
// connection, a failed handshake, whatever ends before a request or an e-mail's
// end was on its way. [consumer.Unknown]: everything that ends behind that
// without an answer. [consumer.Permanent]: a 4xx answer (except 408, 425 and
// 429), a redirect, an SMTP 5xx, an event that lacks what a template needs.
package effect
