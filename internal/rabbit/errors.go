package rabbit

import (
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"
)

// What can become of a message. Only no error at all means that it is durably
// in a queue.
var (
	// ErrNacked says that the broker refused to take the message this time, a
	// full or broken queue for example.
	ErrNacked = errors.New("the broker did not take the message")
	// ErrUnroutable says that no queue is there for the message: exchange or queue
	// are missing, which the topology mode "declare" creates.
	ErrUnroutable = errors.New("no queue for the message")
	// ErrUnconfirmed says that nobody knows whether the broker has the message:
	// the connection was lost, or no confirm came in time.
	ErrUnconfirmed = errors.New("the broker did not confirm the message")
	// ErrSuspect comes with ErrUnconfirmed when the broker closed the channel
	// because of one of the messages that were in flight on it. Whose fault it
	// was shows when each is sent with SendAlone.
	ErrSuspect = errors.New("the broker closed the channel because of a message")
	// ErrRefused says that this message, alone on its channel, is what the broker
	// does not accept (too large, for example), and will not on a further try.
	ErrRefused = errors.New("the broker refuses this message")
	// ErrTopology says that exchanges or queues are not as they have to be. It is
	// reported through Config.OnState; connecting is tried again all the same.
	ErrTopology = errors.New("broker topology")
	// ErrClosed says that Run has ended.
	ErrClosed = errors.New("broker connection closed for good")
)

// messageFault says whether the broker closes a channel or connection with this
// code because of what a message is, not where it goes or what went wrong inside.
func messageFault(e *amqp.Error) bool {
	if e == nil || !e.Server {
		return false
	}
	switch e.Code {
	case amqp.ContentTooLarge, amqp.PreconditionFailed, amqp.FrameError, amqp.SyntaxError,
		amqp.CommandInvalid, amqp.UnexpectedFrame:
		return true
	}
	return false
}
