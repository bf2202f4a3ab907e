package rabbit

import (
	"errors"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// callTimeout bounds one question to the broker and its answer.
	callTimeout = 30 * time.Second
	// closeTimeout bounds saying good-bye.
	closeTimeout = 2 * time.Second
)

// session is one connection from its handshake to its end.
type session struct {
	conn    *amqp.Connection
	raw     net.Conn    // the socket
	out     *gatherConn // what the library writes to
	where   string
	version string
	flow    *gate

	done     chan struct{} // closed when the connection is gone
	err      error         // why; valid once done is closed, nil when we closed it
	watchers sync.WaitGroup
}

// watch notices the end of the connection, and when the broker blocks it.
func (s *session) watch() {
	closed := s.conn.NotifyClose(make(chan *amqp.Error, 1))
	blocked := s.conn.NotifyBlocked(make(chan amqp.Blocking, 8))
	s.watchers.Go(func() {
		for b := range blocked { // the library closes it with the connection
			s.flow.set(b.Active)
		}
	})
	s.watchers.Go(func() {
		if e := <-closed; e != nil {
			s.err = e
		}
		close(s.done)
	})
}

// call runs a question to the broker. The library waits for the answer without
// end; a broker that blocks us reads no question at all. When time is up the
// connection goes, and with it the wait.
func (s *session) call(f func() error) error {
	t := time.AfterFunc(callTimeout, s.kill)
	defer t.Stop()
	return f()
}

// channel opens a channel.
func (s *session) channel() (ch *amqp.Channel, err error) {
	err = s.call(func() error {
		ch, err = s.conn.Channel()
		return err
	})
	return ch, err
}

// kill ends the connection at once, without a word to the broker.
func (s *session) kill() {
	if s.raw != nil {
		_ = s.raw.Close()
		_ = s.out.Close() // its writer has nobody to write to any more
	}
}

// close ends the connection in order, or by force when the broker does not answer.
func (s *session) close() error {
	t := time.AfterFunc(closeTimeout, s.kill)
	defer t.Stop()
	err := s.conn.CloseDeadline(time.Now().Add(closeTimeout))
	s.kill()
	<-s.done
	s.watchers.Wait()
	if errors.Is(err, amqp.ErrClosed) {
		return nil
	}
	return err
}

// gate is open or shut; whoever waits learns of every change.
type gate struct {
	mu      sync.Mutex
	shut    bool
	changed chan struct{}
}

func newGate() *gate { return &gate{changed: make(chan struct{})} }

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != shut {
		g.shut = shut
		close(g.changed)
		g.changed = make(chan struct{})
	}
}

// state says whether the gate is shut, and gives a channel that is closed when
// that changes.
func (g *gate) state() (shut bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut, g.changed
}
