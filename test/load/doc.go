// Package load measures what a delivery costs. `make bench` builds its tests
// into a program and lets that print one table:
//
//	make bench                              # everything: median of 5 rounds of 3 s
//	make bench ROUNDS=1 SECONDS=1 ROWS=redis
//
// Each row is a server in a process of its own, started anew for each round, so
// that no row inherits another's heap or data; the rounds take turns through
// all rows, so that a machine that is busy for a while slows all of them alike.
// Ratios are of the same round, and the table shows their median. The generator
// keeps 64 connections busy, each with one request at a time: 1.2 KB of JSON,
// signed, with a key of its own (or, in the rows of duplicates, one of 1024
// known keys). It speaks HTTP over plain sockets because it shares the machine's
// processors with what it measures.
//
// The columns: answered requests a second (where a row says "to the confirm",
// accepted requests divided by the time until the outbox was empty, which
// includes the time after the last answer), the ratio to a bare Gin handler that
// reads the body and answers 200, the times from sending a request to its
// answer, and the processor time of the server's process a request. Rows at half
// load send at half of the rate that the whole path reached in that round, and
// count from the moment a request was due.
//
// Redis, Postgres and RabbitMQ are private processes. Redis rewrites its append-only
// file in no row, as it would in few of them and then for most of one.
//
// A second table shows how fast consumers work off a full queue, each row between
// two measurements of the rate at which the same messages are consumed and
// acked, 64 with one frame, and nothing is done with them. All have the same
// prefetch, 1000, and the consumers' inbox is in Postgres or SQLite as shipped.
//
// The tests of this package serve a few requests through every row, so that
// `make test` notices when one no longer works.
package load
