// Package inbox is the consumers' memory of events: which of them a group is
// running, has done, will try again or has given up. It is the second check
// behind the receivers' claims, and the one that counts for effects: an effect
// in the inbox's own database commits in one transaction with its record
// ([Inbox.Step]).
//
// A record belongs to one event in one group, found by the digest of the full
// key. It goes through these states:
//
//	(none) ──Begin──▶ running ──Step(last), Finish──▶ done
//	                  │  ▲  ▲
//	       Retry,     │  │  │Begin, with a higher generation (a replay)
//	       Release    ▼  │  │
//	              retrying  │
//	                  ▲     │
//	     MarkReplayed └─── dead ◀── Bury, Park        dead ──Discard──▶ discarded
//
// Whoever runs an event holds a [Lease]: a random token and an end in time,
// moved on by [Inbox.Renew]. Every later write is fenced, which means that it
// happens only while the record still carries the lease's token; otherwise it
// is [ErrLeaseLost] and nothing was written. A lease that has ended is taken
// over by the next delivery, and counted as a crash.
//
// A generation is one replay of an event, with its own budget of attempts and
// crashes. Deliveries of a lower generation than the record's are outdated.
//
// The code is one for Postgres and SQLite; [Dialect] holds what differs. The
// package imports no driver: the caller opens the database. A SQLite database
// must begin its transactions immediate (_txlock=immediate in the DSN).
//
// Times are kept as microseconds since 1970 UTC, 0 for none; in Postgres
// to_timestamp(received_at / 1e6) shows one.
package inbox
