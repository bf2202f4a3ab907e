// Package consumer applies the business effects of events, each once.
//
// A [Consumer] runs groups. A group has a queue of its own, patterns that say
// which events it wants, and steps that are carried out in order. Behind the
// queue stands the inbox, the second check: a database record for each (group,
// source, key) that says whether the event is running, waiting for its next
// try, done or dead. A delivery of a done event is acknowledged and nothing
// else happens, however often the broker delivers it.
//
// A step that writes to the inbox's own database commits its writes and its
// record in one transaction: exactly once. A retry goes on behind the last
// step that is recorded.
//
// The error of a step decides what comes next. nil means done. An error marked
// by [Permanent] makes the event a dead letter now; [RetryAfter] asks for a
// delay of its own; any other error is tried again after an exponential delay
// with full jitter, up to RetryPolicy.MaxAttempts, and is then a dead letter.
// Dead letters wait for a person, who replays or discards them.
//
// Run returns when its context ends and everything in work has come to an end,
// or DrainTimeout has passed: what was not finished is given back and runs
// again elsewhere.
package consumer
