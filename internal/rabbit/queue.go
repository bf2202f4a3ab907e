package rabbit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/wire"
)

const (
	// bindEvery is how often a group's patterns are bound again, so that an
	// instance of another version that unbinds one cannot do so for good.
	bindEvery = time.Minute
	// maxPrefetch is RabbitMQ's own bound for quorum queues.
	maxPrefetch = 2000
)

// Queue is a queue.Queue over RabbitMQ. It consumes over a connection of its
// own and moves messages through a Publisher, which must run as long as it.
type Queue struct {
	cfg  Config
	link *link
	p    *Publisher
	subs atomic.Uint64 // subscriptions so far
}

var (
	_ queue.Queue      = (*Queue)(nil)
	_ queue.DeadCopies = (*Queue)(nil)
)

// NewQueue makes a queue; it connects when Run is called.
func NewQueue(cfg Config, p *Publisher) *Queue {
	q := &Queue{cfg: cfg.withDefaults(), p: p}
	q.link = newLink(q.cfg, "consuming", &p.turn, q.serve)
	return q
}

// Run connects until ctx is done; call it once. Subscriptions break when their
// connection does, and are not made anew. The result is always nil: a broker
// that is away is reported through Config.OnState.
func (q *Queue) Run(ctx context.Context) error {
	q.link.run(ctx)
	return nil
}

// Connected reports whether the consuming connection stands.
func (q *Queue) Connected() bool { return q.link.connected() }

// serve keeps the bindings while the connection lasts.
func (q *Queue) serve(ctx context.Context, s *session) {
	tick := time.NewTicker(bindEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := q.bind(s); err != nil {
				q.cfg.Logger.Warn("the groups' patterns could not be bound again; will try in a minute", "err", err)
			}
		case <-s.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (q *Queue) bind(s *session) error {
	if q.cfg.Topology != Declare {
		return nil
	}
	d := &declarer{s: s}
	defer d.close()
	for _, g := range q.cfg.Groups {
		for _, pattern := range g.Bindings {
			if err := d.bind(GroupQueue(g.Name), pattern, Exchange); err != nil {
				return err
			}
		}
	}
	return nil
}

// Send implements queue.Queue.
func (q *Queue) Send(ctx context.Context, group string, d wire.Delivery) error {
	if group != "" {
		return q.p.Publish(ctx, "", GroupQueue(group), wire.Encode(d))
	}
	exchange, key := Route(d.Event)
	return q.p.Publish(ctx, exchange, key, wire.Encode(d))
}

// Subscribe implements queue.Queue. It waits for the connection; prefetch is at
// most 2000.
func (q *Queue) Subscribe(ctx context.Context, group string, prefetch int) (queue.Subscription, error) {
	return q.subscribeTo(ctx, group, GroupQueue(group), prefetch)
}

// SubscribeDead implements queue.DeadCopies.
func (q *Queue) SubscribeDead(ctx context.Context, group string, prefetch int) (queue.Subscription, error) {
	return q.subscribeTo(ctx, group, DeadQueue(group), prefetch)
}

// DeadLength implements queue.DeadCopies.
func (q *Queue) DeadLength(ctx context.Context, group string) (int, error) {
	s, err := q.link.session(ctx)
	if err != nil {
		return 0, err
	}
	m := &measurer{declarer{s: s}}
	defer m.close()
	return m.length(DeadQueue(group))
}

func (q *Queue) subscribeTo(ctx context.Context, group, from string, prefetch int) (queue.Subscription, error) {
	s, err := q.link.session(ctx)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", from, err)
	}
	sub, err := q.subscribe(s, group, from, min(max(prefetch, 1), maxPrefetch))
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", from, err)
	}
	return sub, nil
}

func (q *Queue) subscribe(s *session, group, from string, prefetch int) (*subscription, error) {
	ch, err := s.channel()
	if err != nil {
		return nil, err
	}
	n := q.subs.Add(1)
	sub := newSubscription(q, s, ch, group, from, n)
	err = s.call(func() error { return ch.Qos(prefetch, 0, false) })
	if err == nil {
		err = s.call(func() (err error) {
			sub.deliveries, err = ch.Consume(from, sub.consumer, false, false, false, false, nil)
			return err
		})
	}
	if err != nil {
		_ = s.call(ch.Close)
		return nil, err
	}
	sub.start()
	return sub, nil
}

// Depth is how much of a group waits where.
type Depth struct {
	Ready    int // in its queue
	Retrying int // in its retry buckets
	Dead     int // copies of dead letters
}

// Depths measures groups' queues; group "-" is the unrouted queue. A group
// whose queues do not exist is left out.
func (q *Queue) Depths(ctx context.Context, groups []string) (map[string]Depth, error) {
	s, err := q.link.session(ctx)
	if err != nil {
		return nil, err
	}
	m := &measurer{declarer{s: s}}
	defer m.close()
	depths := make(map[string]Depth, len(groups))
	for _, g := range groups {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, err := m.depth(g)
		if errors.Is(err, ErrTopology) {
			continue
		}
		if err != nil {
			return nil, err
		}
		depths[g] = d
	}
	return depths, nil
}

type measurer struct{ declarer }

func (m *measurer) depth(group string) (Depth, error) {
	ready, err := m.length(GroupQueue(group))
	if err != nil || group == queue.Unrouted {
		return Depth{Ready: ready}, err
	}
	d := Depth{Ready: ready}
	for _, delay := range Delays() {
		n, err := m.length(RetryQueue(group, delay))
		if err != nil {
			return d, err
		}
		d.Retrying += n
	}
	d.Dead, err = m.length(DeadQueue(group))
	return d, err
}

func (m *measurer) length(name string) (n int, err error) {
	err = m.ask("queue", name, func(ch *amqp.Channel) error {
		q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		n = q.Messages
		return err
	})
	return n, err
}

// Unbind takes patterns off a group's queue that the group no longer wants.
func (q *Queue) Unbind(ctx context.Context, group string, patterns ...string) error {
	s, err := q.link.session(ctx)
	if err != nil {
		return err
	}
	d := &declarer{s: s}
	defer d.close()
	for _, pattern := range patterns {
		err := d.ask("queue", GroupQueue(group), func(ch *amqp.Channel) error {
			return ch.QueueUnbind(GroupQueue(group), pattern, Exchange, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
