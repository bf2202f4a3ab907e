package guarantee

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// everyProvider is a source for each preset, as `hookonce send` prints it, with
// "p-" before its name, and a group that writes down every event.
func everyProvider(t *testing.T) (names []string, dedup map[string]string, add addition) {
	t.Helper()
	out, code := command("providers", "list", "--json")
	if code != 0 {
		t.Fatalf("providers list: exit %d\n%s", code, out)
	}
	dedup = map[string]string{}
	for line := range strings.Lines(out) {
		var p struct{ Name, Dedup string }
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		entry, code := command("send", "--provider", p.Name, "--print-source")
		if code != 0 {
			t.Fatalf("send --print-source: exit %d\n%s", code, entry)
		}
		names, dedup[p.Name] = append(names, p.Name), p.Dedup
		add.sources += strings.Replace(entry, "  "+p.Name+":", "  p-"+p.Name+":", 1)
	}
	add.consumers = `  seen:
    match: [ "#" ]
    effects:
      - name: note
        sql: insert into seen (key, source) values (:key, :source)
        params: { key: key, source: source }
`
	add.tables = "create table seen (key text not null, source text not null);\n"
	return names, dedup, add
}

// P2, P7: of each provider, twenty copies at once take effect once (without a
// key of their own: each), and a tampered copy leaves nothing at all.
func TestP2_EveryProvidersEventTakesEffectOnce(t *testing.T) {
	const copies = 20
	names, dedup, add := everyProvider(t)
	for shape, make := range map[string]func(t *testing.T) *shape{
		"one":             func(t *testing.T) *shape { return newOneWith(t, add) },
		"split":           func(t *testing.T) *shape { return newSplitWith(t, "redis", false, add) },
		"split on hybrid": func(t *testing.T) *shape { return newSplitWith(t, "hybrid", false, add) },
	} {
		t.Run(shape, func(t *testing.T) {
			s := make(t)
			s.start()
			total, wanted := 0, map[string]int{}
			for _, name := range names {
				hook := s.hooks + "/hooks/p-" + name
				if out, code := command("send", "--provider", name, "--tamper", "--duplicates", "2", hook); code != 0 || strings.Count(out, "401\t") != 2 {
					t.Errorf("%s, tampered: exit %d\n%s", name, code, out)
				}
				out, code := command("send", "--provider", name, "--duplicates", fmt.Sprint(copies), "--concurrency", fmt.Sprint(copies), hook)
				want := 1
				if dedup[name] == "none" {
					want = copies
				}
				if code != 0 || strings.Count(out, "\ttrue\t") != copies-want {
					t.Errorf("%s: exit %d, want %d copies that are no duplicates\n%s", name, code, want, out)
				}
				total, wanted[name] = total+want, want
			}
			for name, want := range wanted {
				s.waitRows(30*time.Second, want, fmt.Sprintf("select count(*) from seen where source = 'p-%s'", name))
			}
			s.settle()
			s.waitRows(time.Second, total, "select count(*) from seen where source like 'p-%'")
			s.waitRows(time.Second, total, "select count(distinct key) from seen where source like 'p-%'")
			if out, code := s.operate("dead", "list", "--json"); code != 0 || strings.TrimSpace(out) != "" {
				t.Errorf("dead letters: exit %d\n%s", code, out)
			}
		})
	}
}
