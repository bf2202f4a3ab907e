package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/sqlite"
)

// childFile names the database of a child process that claims until it is killed.
const childFile = "HOOKONCE_TEST_SQLITE_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		fmt.Fprintln(os.Stderr, claimForEver(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// claimForEver prints each key after its claim was answered.
func claimForEver(path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, sqlite.Options{Path: path, Route: byType})
	if err != nil {
		return err
	}
	var out sync.Mutex
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, i)
				if _, err := s.ClaimOne(ctx, claimOf(event(id, "one"))); err != nil {
					errs <- err
					return
				}
				out.Lock()
				fmt.Fprintln(os.Stdout, id)
				out.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(<-errs, s.Close())
}

func TestKilledProcessKeepsWhatWasAnswered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hookonce.db")
	answered := map[string]bool{}
	for round := 1; round <= 3; round++ {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childFile+"="+path)
		cmd.Stderr = os.Stderr
		stdout, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			answered[lines.Text()] = true
			if len(answered) == 150*round {
				must(t, cmd.Process.Kill()) // what it printed until then is still read
			}
		}
		_ = cmd.Wait() // killed
	}
	if len(answered) < 450 {
		t.Fatalf("only %d claims were answered", len(answered))
	}
	s := open(t, sqlite.Options{Path: path, Route: byType}) // the lock went with the process
	var cs []hookonce.Claim
	for id := range answered {
		cs = append(cs, claimOf(event(id, "one")))
	}
	out, err := s.Claim(t.Context(), cs)
	must(t, err)
	for i, got := range out {
		if got.Outcome != hookonce.Duplicate {
			t.Errorf("%s was answered and its claim is lost", cs[i].Event.Key)
		}
	}
	rows := map[string]bool{}
	sub := subscribe(t, s, "tickets", 64)
	for range waiting(t, s) {
		r := next(t, sub)
		rows[r.Key.ID] = true
		must(t, sub.Ack(t.Context(), r))
	}
	for id := range answered {
		if !rows[id] {
			t.Errorf("%s was answered and is lost", id)
		}
	}
}
