package guarantee

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// P1, P8: a failing effect is tried again with delay, becomes a dead letter,
// and is replayed by an operator: one row in the end, however often it is
// replayed.
func TestP8_AFailingEffectIsRetriedDeadLetteredAndReplayedOnce(t *testing.T) {
	bothShapes(t, func(t *testing.T, s *shape) {
		s.start()
		s.exec("alter table tickets rename to tickets_away")
		mustPost(t, s.hooks+"/hooks/orders", orderBody("D-1"), nil)

		s.waitState("orders/D-1", "retrying")
		dead := s.waitDead("orders/D-1")
		if dead["reason"] != "failed" || dead["step"] != "issue-ticket" || dead["attempts"] != 3.0 || dead["group"] != "tickets" {
			t.Errorf("dead letter %v", dead)
		}
		s.metric(`hookonce_retries_total{group="tickets"} 2`)
		s.metric(`hookonce_dead_total{group="tickets",reason="failed"} 1`)

		s.exec("alter table tickets_away rename to tickets")
		if out, code := s.operate("dead", "replay"); code != 2 {
			t.Errorf("dead replay without a filter: exit %d, want 2\n%s", code, out)
		}
		out, code := s.operate("dead", "replay", "--key", "orders/D-1")
		if code != 0 || !strings.Contains(out, `"result":"replayed"`) {
			t.Fatalf("dead replay: exit %d\n%s", code, out)
		}
		s.waitRows(30*time.Second, 1, "select count(*) from tickets")
		s.waitState("orders/D-1", "done")
		if out, _ := s.operate("dead", "replay", "--key", "orders/D-1"); !strings.Contains(out, "skipped: already done") {
			t.Errorf("second replay: %s", out)
		}
		s.exactlyOnce(1)
	})
}

// A dead letter that nobody needs can be discarded; it stays away.
func TestP8_ADiscardedDeadLetterStaysAway(t *testing.T) {
	bothShapes(t, func(t *testing.T, s *shape) {
		s.start()
		s.exec("alter table tickets rename to tickets_away")
		mustPost(t, s.hooks+"/hooks/orders", orderBody("D-2"), nil)
		s.waitDead("orders/D-2")
		s.exec("alter table tickets_away rename to tickets")
		if out, code := s.operate("dead", "discard", "--key", "orders/D-2"); code != 0 || !strings.Contains(out, `"result":"discarded"`) {
			t.Fatalf("dead discard: exit %d\n%s", code, out)
		}
		s.waitState("orders/D-2", "discarded")
		mustPost(t, s.hooks+"/hooks/orders", orderBody("D-2"), nil)
		s.exactlyOnce(0)
	})
}

// operate runs an operator command against the running admin API.
func (s *shape) operate(args ...string) (string, int) {
	return command(append(args, "--admin", s.admin, "--json")...)
}

func (s *shape) exec(query string) {
	s.t.Helper()
	if _, err := s.db.ExecContext(s.t.Context(), query); err != nil {
		s.t.Fatal(err)
	}
}

// lines reads what an operator command printed, one JSON object a line.
func lines(out string) ([]map[string]any, error) {
	var all []map[string]any
	dec := json.NewDecoder(strings.NewReader(out))
	for {
		var line map[string]any
		err := dec.Decode(&line)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w in %q", err, out)
		}
		all = append(all, line)
	}
}

// waitDead waits until dead list shows the key and returns its line.
func (s *shape) waitDead(key string) (dead map[string]any) {
	s.t.Helper()
	within(s.t, 60*time.Second, key+" is a dead letter", func() error {
		out, code := s.operate("dead", "list", "--key", key)
		ls, err := lines(out)
		if code != 0 || err != nil || len(ls) != 1 {
			return fmt.Errorf("exit %d, %v: %s", code, err, out)
		}
		dead = ls[0]
		return nil
	})
	return dead
}

// waitState waits until events list shows the key in the state.
func (s *shape) waitState(key, state string) {
	s.t.Helper()
	within(s.t, 30*time.Second, key+" is "+state, func() error {
		out, code := s.operate("events", "list", "--key", key)
		ls, err := lines(out)
		if code != 0 || err != nil || len(ls) != 1 || ls[0]["state"] != state {
			return fmt.Errorf("exit %d, %v: %s", code, err, out)
		}
		return nil
	})
}

// metric waits until the admin listener shows the sample.
func (s *shape) metric(sample string) {
	s.t.Helper()
	within(s.t, 10*time.Second, "metric "+sample, func() error {
		resp, err := client.Get(s.admin + "/metrics")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err == nil && !strings.Contains(string(b), sample+"\n") {
			err = fmt.Errorf("not among the metrics")
		}
		return err
	})
}
