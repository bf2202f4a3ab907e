package rabbit_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/rabbit"
)

func TestGatherKeepsTheOrder(t *testing.T) {
	ours, theirs := net.Pipe()
	conn := rabbit.GatherConn(ours)
	var want []byte
	for n := range 1000 {
		part := bytes.Repeat([]byte{byte(n)}, n)
		want = append(want, part...)
	}
	got := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(theirs)
		got <- all
	}()
	for rest, n := want, 0; n < 1000; n++ {
		if _, err := conn.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := conn.Close(); err != nil { // writes what waits first
		t.Fatal(err)
	}
	if all := <-got; !bytes.Equal(all, want) {
		t.Errorf("%d bytes arrived, %d were written, or in another order", len(all), len(want))
	}
	if _, err := conn.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("written after the end: %v", err)
	}
}

// TestGatherBoundsWriters fills a connection that nobody reads: writers wait,
// then learn that it is dead.
func TestGatherBoundsWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close() //nolint:errcheck // a pipe of the test
		conn := rabbit.GatherConn(rabbit.DeadlineConn(ours, 10*time.Second))
		begin := time.Now()
		var err error
		for range 100 {
			if _, err = conn.Write(make([]byte, 64<<10)); err != nil {
				break
			}
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		_ = conn.Close()
	})
}

// TestGatherClosesInTime closes a connection that nobody reads.
func TestGatherClosesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close() //nolint:errcheck // a pipe of the test
		conn := rabbit.GatherConn(rabbit.DeadlineConn(ours, 10*time.Second))
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_ = conn.Close()
		if took := time.Since(begin); took != time.Second {
			t.Errorf("took %v", took)
		}
	})
}
