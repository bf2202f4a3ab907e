package guarantee

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// bothShapesWith is bothShapes with more in the configuration, and a target of
// its own for each shape's effects.
func bothShapesWith(t *testing.T, more func(g *target) addition, test func(t *testing.T, s *shape, g *target)) {
	t.Run("one", func(t *testing.T) {
		g := newTarget(t)
		test(t, newOneWith(t, more(g)), g)
	})
	t.Run("split", func(t *testing.T) {
		g := newTarget(t)
		test(t, newSplitWith(t, "redis", false, more(g)), g)
	})
}

// target is an HTTP target that takes every request and, while it is held,
// answers none.
type target struct {
	url string

	mu   sync.Mutex
	hold chan struct{}
	keys map[string]map[string]int // path and order -> Idempotency-Key -> requests
}

func newTarget(t *testing.T) *target {
	t.Helper()
	g := &target{keys: map[string]map[string]int{}}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		at := r.URL.Path + " " + orderOf(r)
		g.mu.Lock()
		if g.keys[at] == nil {
			g.keys[at] = map[string]int{}
		}
		g.keys[at][r.Header.Get("Idempotency-Key")]++
		hold := g.hold
		g.mu.Unlock()
		if hold != nil {
			<-hold
		}
	}))
	g.url = s.URL
	t.Cleanup(func() { g.release(); s.Close() })
	return g
}

func (g *target) holdAnswers() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold = make(chan struct{})
}

func (g *target) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.hold != nil {
		close(g.hold)
		g.hold = nil
	}
}

// got is how many requests came, under how many keys.
func (g *target) got(path, order string) (keys, requests int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.keys[path+" "+order] {
		requests += n
	}
	return len(g.keys[path+" "+order]), requests
}

// waitGroup waits until events list shows the key in the state, in one group.
func (s *shape) waitGroup(key, group, state string) {
	s.t.Helper()
	within(s.t, 60*time.Second, fmt.Sprintf("%s is %s in %s", key, state, group), func() error {
		out, code := s.operate("events", "list", "--key", key, "--group", group)
		ls, err := lines(out)
		if code != 0 || err != nil || len(ls) != 1 || ls[0]["state"] != state {
			return fmt.Errorf("exit %d, %v: %s", code, err, out)
		}
		return nil
	})
}

const outsideSource = `
  out:
    provider: generic
    verify: none
    key: [ "json:id" ]
    type: "json:event"
`

func outBody(id, order string) string {
	return fmt.Sprintf(`{"id":%q,"event":"order.paid","order":{"id":%q}}`, id, order)
}

// P2, P8: a process that dies while an effect outside is under way leaves it
// unknown. One effect is tried again under the same key; the other waits for a
// person, and a replay leaves it alone until the person has decided.
func TestP2_AnEffectCutOffByAKillIsRerunUnderItsKeyOrLeftToAPerson(t *testing.T) {
	bothShapesWith(t, func(g *target) addition {
		forward := func(name string) string {
			return fmt.Sprintf(`forward: { url: "%s/%s", timeout: 50s, allow_private: 127.0.0.0/8 }`, g.url, name)
		}
		return addition{sources: outsideSource, consumers: fmt.Sprintf(`
  rerun:
    match: [ "out.#" ]
    effects:
      - name: tell
        %s
  park:
    match: [ "out.#" ]
    effects:
      - name: charge
        %s
        on_unknown: park
`, forward("rerun"), forward("park"))}
	}, func(t *testing.T, s *shape, g *target) {
		s.start()
		g.holdAnswers()
		mustPost(t, s.hooks+"/hooks/out", outBody("U-1", "U-1"), nil)
		within(t, 30*time.Second, "both requests are under way", func() error {
			_, a := g.got("/rerun", "U-1")
			_, b := g.got("/park", "U-1")
			if a != 1 || b != 1 {
				return fmt.Errorf("%d and %d", a, b)
			}
			return nil
		})
		s.consumer.kill()
		g.release()
		s.consumer.start()
		s.waitGroup("out/U-1", "rerun", "done")
		if keys, requests := g.got("/rerun", "U-1"); keys != 1 || requests != 2 {
			t.Errorf("%d requests under %d keys; want 2 under one", requests, keys)
		}
		s.waitGroup("out/U-1", "park", "dead")
		replay := func(code int, result string, more ...string) {
			t.Helper()
			out, got := s.operate(append([]string{"dead", "replay", "--key", "out/U-1", "--group", "park"}, more...)...)
			if got != code || !strings.Contains(out, result) {
				t.Errorf("dead replay %v: exit %d, want %d with %q\n%s", more, got, code, result, out)
			}
		}
		replay(0, `"result":"skipped: unknown step charge"`)
		replay(2, "", "--unknown", "done")
		replay(2, "", "--unknown", "perhaps", "--reason", "x")
		replay(0, `"result":"replayed"`, "--unknown", "done", "--reason", "the bank shows it")
		s.waitGroup("out/U-1", "park", "done")
		replay(0, `"result":"skipped: already done"`)
		if keys, requests := g.got("/park", "U-1"); keys != 1 || requests != 1 {
			t.Errorf("%d charges under %d keys; want one", requests, keys)
		}
		out, _ := s.operate("events", "show", "out/U-1")
		if !strings.Contains(out, "the bank shows it") {
			t.Errorf("the decision is not in the timeline: %s", out)
		}
	})
}

// P2: two events of the provider name one order: one row, one call.
func TestP2_OncePerHoldsAcrossEventsOfOneOrder(t *testing.T) {
	bothShapesWith(t, func(g *target) addition {
		return addition{sources: outsideSource, tables: "create table once_rows (order_id text not null);\n", consumers: fmt.Sprintf(`
  once:
    match: [ "out.#" ]
    effects:
      - name: ticket
        once_per: json:order.id
        sql: insert into once_rows (order_id) values (:id)
        params: { id: "json:order.id" }
      - name: tell
        once_per: json:order.id
        forward: { url: "%s/tell", allow_private: 127.0.0.0/8 }
`, g.url)}
	}, func(t *testing.T, s *shape, g *target) {
		s.start()
		const orders = 20
		var wg sync.WaitGroup
		for i := range 2 * orders { // both of one order at the same time
			wg.Go(func() {
				deliver(t, s.hooks+"/hooks/out", outBody(fmt.Sprintf("evt-%d", i), fmt.Sprintf("O-%d", i/2)), nil)
			})
		}
		wg.Wait()
		for i := range 2 * orders {
			s.waitGroup(fmt.Sprintf("out/evt-%d", i), "once", "done")
		}
		if n, err := s.ints("select count(*) from once_rows"); err != nil || n != orders {
			t.Errorf("%d rows for %d orders, %v", n, orders, err)
		}
		for i := range orders {
			if keys, requests := g.got("/tell", fmt.Sprintf("O-%d", i)); keys != 1 || requests != 1 {
				t.Errorf("order %d: %d calls under %d keys", i, requests, keys)
			}
		}
	})
}

// P8: a step that is done runs again only by force, by name, and with a reason.
func TestP8_ADoneStepRunsAgainOnlyByForceWithAReason(t *testing.T) {
	bothShapesWith(t, func(*target) addition {
		return addition{sources: outsideSource, tables: "create table first_rows (id text not null);\n", consumers: `
  forced:
    match: [ "out.#" ]
    retry: { max_attempts: 1 }
    effects:
      - name: first
        sql: insert into first_rows (id) values (:id)
        params: { id: "json:id" }
      - name: second
        sql: insert into second_rows (id) values (:id)
        params: { id: "json:id" }
`}
	}, func(t *testing.T, s *shape, _ *target) {
		s.start()
		mustPost(t, s.hooks+"/hooks/out", outBody("X-1", "X-1"), nil)
		s.waitGroup("out/X-1", "forced", "dead")
		s.exec("create table second_rows (id text not null)")
		for _, wrong := range [][]string{
			{"--force"}, {"--force", "--step", "first"}, {"--force", "--reason", "x"}, {"--step", "first"},
		} {
			if out, code := s.operate(append([]string{"dead", "replay", "--key", "out/X-1"}, wrong...)...); code != 2 {
				t.Errorf("%v: exit %d, want 2\n%s", wrong, code, out)
			}
		}
		out, code := s.operate("dead", "replay", "--key", "out/X-1", "--force", "--step", "first", "--reason", "the row was lost")
		if code != 0 || !strings.Contains(out, `"result":"replayed"`) {
			t.Fatalf("exit %d\n%s", code, out)
		}
		s.waitGroup("out/X-1", "forced", "done")
		for table, want := range map[string]int{"first_rows": 2, "second_rows": 1} {
			if n, err := s.ints("select count(*) from " + table); err != nil || n != want {
				t.Errorf("%d rows in %s, want %d, %v", n, table, want, err)
			}
		}
		if out, _ := s.operate("events", "show", "out/X-1"); !strings.Contains(out, "the row was lost") {
			t.Errorf("the reason is not in the timeline: %s", out)
		}
	})
}

// A paused group stays paused over a restart, loses nothing, and holds up no
// other.
func TestP1_APausedGroupKeepsItsEventsOverARestart(t *testing.T) {
	bothShapes(t, func(t *testing.T, s *shape) {
		s.start()
		if out, code := s.operate("pause", "replies", "--reason", "the CRM moves"); code != 0 {
			t.Fatalf("pause: exit %d\n%s", code, out)
		}
		if out, code := s.operate("pause", "nobody"); code != 3 {
			t.Errorf("pause of no group: exit %d, want 3\n%s", code, out)
		}
		s.restart()
		mustPost(t, s.hooks+"/hooks/whatsapp-in", `{"kind":"text","message":{"id":"wamid.1"}}`, nil)
		mustPost(t, s.hooks+"/hooks/orders", orderBody("P-1"), nil)
		s.waitRows(30*time.Second, 1, "select count(*) from tickets")
		if n, err := s.ints("select count(*) from replies"); err != nil || n != 0 {
			t.Errorf("%d replies of a paused group, %v", n, err)
		}
		if out, code := s.operate("resume", "replies"); code != 0 {
			t.Fatalf("resume: exit %d\n%s", code, out)
		}
		s.waitRows(30*time.Second, 1, "select count(*) from replies")
	})
}
