package rabbit

import (
	"errors"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// deliveryLimit is a limit that is never reached. Unset means 20 on RabbitMQ
// 4.x, after which messages vanish; -1 drops at the first requeue before 4.0.
const deliveryLimit int32 = 2_000_000_000

// declarer asks for exchanges and queues on throw-away channels: a question
// that fails closes its channel, and one between the frames of a message would
// break a channel that publishes.
type declarer struct {
	s       *session
	ch      *amqp.Channel
	passive bool
}

// ensureTopology makes the topology what cfg says. turn keeps the connections
// of one process from declaring the same queues at the same moment.
func ensureTopology(s *session, cfg Config, turn *sync.Mutex) error {
	if cfg.Topology == Assume {
		return nil
	}
	turn.Lock()
	defer turn.Unlock()
	d := &declarer{s: s, passive: cfg.Topology == Verify}
	defer d.close()
	if err := d.shared(); err != nil {
		return err
	}
	for _, g := range cfg.Groups {
		if err := d.group(g); err != nil {
			return err
		}
	}
	return nil
}

func (d *declarer) close() {
	if d.ch != nil {
		_ = d.s.call(d.ch.Close)
	}
}

func (d *declarer) shared() error {
	if err := d.exchange(UnroutedExchange, amqp.ExchangeFanout, nil); err != nil {
		return err
	}
	if err := d.queue(UnroutedQueue, nil); err != nil {
		return err
	}
	if err := d.bind(UnroutedQueue, "", UnroutedExchange); err != nil {
		return err
	}
	return d.exchange(Exchange, amqp.ExchangeTopic, amqp.Table{"alternate-exchange": UnroutedExchange})
}

// group declares the queues first and binds last: an event that arrives then
// has all it may need.
func (d *declarer) group(g GroupTopology) error {
	home := GroupQueue(g.Name)
	if err := d.queue(home, nil); err != nil {
		return err
	}
	for _, delay := range Delays() {
		err := d.queue(RetryQueue(g.Name, delay), amqp.Table{
			amqp.QueueMessageTTLArg:     delay.Wait.Milliseconds(),
			"x-dead-letter-exchange":    "",
			"x-dead-letter-routing-key": home,
			"x-dead-letter-strategy":    "at-least-once",
			amqp.QueueOverflowArg:       amqp.QueueOverflowRejectPublish,
		})
		if err != nil {
			return err
		}
	}
	if err := d.queue(DeadQueue(g.Name), nil); err != nil {
		return err
	}
	for _, pattern := range g.Bindings {
		if err := d.bind(home, pattern, Exchange); err != nil {
			return err
		}
	}
	return nil
}

func (d *declarer) exchange(name, kind string, args amqp.Table) error {
	return d.ask("exchange", name, func(ch *amqp.Channel) error {
		if d.passive {
			return ch.ExchangeDeclarePassive(name, kind, true, false, false, false, args)
		}
		return ch.ExchangeDeclare(name, kind, true, false, false, false, args)
	})
}

func (d *declarer) queue(name string, args amqp.Table) error {
	if args == nil {
		args = amqp.Table{}
	}
	args[amqp.QueueTypeArg] = amqp.QueueTypeQuorum
	args["x-delivery-limit"] = deliveryLimit
	return d.ask("queue", name, func(ch *amqp.Channel) (err error) {
		if d.passive {
			_, err = ch.QueueDeclarePassive(name, true, false, false, false, args)
		} else {
			_, err = ch.QueueDeclare(name, true, false, false, false, args)
		}
		return err
	})
}

func (d *declarer) bind(queue, pattern, exchange string) error {
	if d.passive {
		return nil // bindings cannot be asked for
	}
	return d.ask("queue", queue, func(ch *amqp.Channel) error {
		return ch.QueueBind(queue, pattern, exchange, false, nil)
	})
}

// ask puts one question and explains a refusal.
func (d *declarer) ask(kind, name string, f func(*amqp.Channel) error) error {
	if d.ch == nil || d.ch.IsClosed() {
		ch, err := d.s.channel()
		if err != nil {
			return fmt.Errorf("open a channel to declare %s %s: %w", kind, name, err)
		}
		d.ch = ch
	}
	err := d.s.call(func() error { return f(d.ch) })
	if err == nil {
		return nil
	}
	var e *amqp.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("declare %s %s: %w", kind, name, err)
	}
	var hint string
	switch e.Code {
	case amqp.PreconditionFailed:
		hint = fmt.Sprintf("it exists with other arguments; delete it when it is empty (rabbitmqctl delete_queue), or set broker.topology to %s to use it as it is", Verify)
		if kind == "exchange" {
			hint = fmt.Sprintf("it exists with other arguments; delete it, or set broker.topology to %s to use it as it is", Verify)
		}
	case amqp.NotFound:
		hint = fmt.Sprintf("it does not exist; create it, or set broker.topology to %s", Declare)
	case amqp.AccessRefused:
		hint = fmt.Sprintf("the user may not; give it configure, write and read permission on hookonce.*, or create the topology yourself and set broker.topology to %s", Verify)
	default:
		return fmt.Errorf("declare %s %s: %w", kind, name, err)
	}
	return fmt.Errorf("%w: %s %s: %s: %w", ErrTopology, kind, name, hint, err)
}
