// Package effect turns the effects of a configuration file into steps of a
// consumer group. sql writes to the inbox's own database, in the transaction
// that records the step.
//
// Parameters are named in the statement (":order_id") and filled from the
// event: "json:order.id", "header:X-Id", "key", "source", "type", "body",
// "received_at", or a template of JSON paths. A path that is missing is NULL.
package effect
