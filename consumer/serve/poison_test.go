package serve_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/consumer/serve"
	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/internal/testenv"
)

// envDir makes this test binary a consumer that one event kills.
const envDir = "HOOKONCE_POISON_DIR"

func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(envDir); ok {
		if err := serve.Run(context.Background(), poisoned(dir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(testenv.Run(m))
}

const killed = 137 // as the out-of-memory killer leaves it

func poisoned(dir string) serve.Config {
	handle := func(ctx context.Context, d *consumer.Delivery) error {
		if d.Event.Key.ID == "poison" {
			os.Exit(killed)
		}
		return d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "insert into tickets values ($1)", d.Event.Key.ID)
			return err
		})
	}
	return serve.Config{
		Dir: dir, Lease: 600 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		Groups: []consumer.Group{{Name: "tickets", Handlers: []consumer.Route{consumer.HandleFunc("shop.#", handle)}}},
	}
}

// P1: an event that kills its process is counted before it runs, runs alone
// from its second crash on, and becomes a dead letter; the twenty good ones
// around it are all done, each once.
func TestAPoisonEventIsADeadLetterAndTheOthersAreDone(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 20)
	db, err := sqlite.OpenDB(t.Context(), filepath.Join(dir, "inbox.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // read only
	crashes := 0
	for over := false; !over; {
		if crashes > 8 {
			t.Fatalf("%d crashes, and no end", crashes)
		}
		var exit *exec.ExitError
		over, err = consumeUntilOver(t, dir, db)
		if errors.As(err, &exit) && exit.ExitCode() == killed {
			crashes++
		} else if !over {
			t.Fatalf("the consumer ended: %v", err)
		}
	}
	var reason string
	if err := db.QueryRowContext(t.Context(), "select reason from hookonce_dead").Scan(&reason); err != nil || reason != "crashed" {
		t.Errorf("reason %q, %v", reason, err)
	}
	var rows, ids int
	if err := db.QueryRowContext(t.Context(), "select count(*), count(distinct id) from tickets").Scan(&rows, &ids); err != nil || rows != 20 || ids != 20 {
		t.Errorf("%d rows of %d orders, %v", rows, ids, err)
	}
	if crashes != 5 {
		t.Errorf("%d crashes; want max_crashes of them", crashes)
	}
}

// publish leaves the good events around the poison.
func publish(t *testing.T, dir string, good int) {
	t.Helper()
	s, err := serve.Open(t.Context(), poisoned(dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.DB().ExecContext(t.Context(), "create table tickets (id text)"); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		if i == good/2 {
			send(t, s, "poison")
		}
		send(t, s, fmt.Sprint("good-", i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, s *serve.Service, id string) {
	t.Helper()
	e := hookonce.Event{Key: hookonce.Key{Source: "shop", ID: id}, Type: "order.paid", Body: []byte(`{}`)}
	if err := s.Publish(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// consumeUntilOver runs the consumer until it dies, or until everything is
// done or dead.
func consumeUntilOver(t *testing.T, dir string, db *sql.DB) (over bool, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envDir+"="+dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	deadline := time.After(60 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return false, err
		case <-deadline:
			_ = cmd.Process.Kill()
			<-ended
			t.Fatal("neither dead nor over within a minute")
		case <-tick.C:
		}
		var left int
		err := db.QueryRowContext(t.Context(), `select 21 - count(*) from hookonce_inbox where state in ('done', 'dead')`).Scan(&left)
		if err == nil && left == 0 {
			_ = cmd.Process.Kill()
			return true, <-ended
		}
	}
}
