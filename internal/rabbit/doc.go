// Package rabbit speaks AMQP 0-9-1 to RabbitMQ 3.10 to 4.x. It is the only
// importer of the client library, and it uses none of that library's recovery:
// a connection or channel that broke is dropped for good and a new one takes
// its place, so that an ack can never name a delivery of another connection.
//
//   - [Publisher] publishes with confirms, pipelined, and tells for every
//     message what became of it.
//   - [Queue] is the queue.Queue of consumers, on a connection of its own.
//   - Both declare the topology (see [Config]) each time they connect.
//
// Publisher and Queue connect by themselves, for as long as their Run lasts:
// without limit, with growing, jittered pauses, one URL after the other.
//
// # Topology
//
// Topic exchange hookonce.events; what no queue is bound for goes through its
// alternate exchange to the queue hookonce.unrouted. A group has the queue
// hookonce.<group>, one retry bucket hookonce.<group>.retry.<delay> for each of
// [Delays], whose messages come back to the group's queue after that delay, and
// hookonce.<group>.dead. All are quorum queues with a delivery limit that is
// never reached: attempts are counted by the inbox.
package rabbit
