// Package consumer applies the business effects of events, each once.
//
// A [Consumer] runs groups. A group has a queue of its own, patterns that say
// which events it wants, and either steps that are carried out in order or
// handlers in Go. Package serve opens all that a consumer needs from URLs;
// start there.
//
// # Once
//
// Behind the queue stands the inbox, the second check: a database record for
// each (group, source, key) that says whether the event is running, waiting for
// its next try, done or dead. A delivery of a done event is acknowledged and
// nothing else happens, however often the broker delivers it. Whoever runs an
// event holds a lease, and a record under a lost lease is not written.
//
// A step that writes to the inbox's own database ([Step].Tx, [Step].Statements,
// [Delivery.Tx], [Delivery.StepTx]) commits its writes and its record in one
// transaction: exactly once. A step with an effect outside ([Step].Do,
// [Delivery.Step]) is recorded as started, and that is committed, before it is
// called, and as done after. What is started and has no end is unknown: by
// [Step].OnUnknown it is tried again with the same downstream key ([Try].Key),
// for a limited time, or left to a person. A retry goes on behind the last step
// that is recorded.
//
// # Failures
//
// The error of a step or handler decides what comes next. nil means done. An
// error marked by [Permanent] makes the event a dead letter now; [RetryAfter]
// asks for a delay of its own; [Unknown] says that an effect outside may have
// happened; any other error is tried again after an exponential delay with full
// jitter, up to RetryPolicy.MaxAttempts, and is then a dead letter. A panic is a
// failure too. Dead letters wait for a person, who replays or discards them.
//
// An event that kills its process is counted before it runs. From its second
// crash on it runs alone, and after RetryPolicy.MaxCrashes it is a dead letter.
//
// # Shared transactions
//
// Deliveries that are ready at the same moment share the transactions of their
// leases, their steps and their records; nothing waits for company. A work that fails is rolled back alone. A
// function that was given a transaction may therefore be called again, and must
// do nothing that a rollback would not undo; [Step].OwnTx and [Delivery.OwnTx]
// have a transaction of their own. One that takes long is noticed, and fewer
// share with it for a while.
//
// # End
//
// Run returns when its context ends and everything in work has come to an end,
// or DrainTimeout has passed: what was not finished is given back and runs
// again elsewhere.
package consumer
