// Package guarantee holds the promises of Hookonce as tests, one file a
// promise. Each runs the real programs, in both shapes: one process on the
// embedded SQLite store, and receiver and consumer apart on RabbitMQ, Redis and
// Postgres. Nothing in it is a double.
package guarantee
