package arch_test

import (
	"slices"
	"strings"
	"testing"
)

// rule forbids packages to reach others. With deep it counts what is linked,
// however far away; otherwise only what the files themselves import.
type rule struct {
	name   string
	reason string
	// on are the folders that the rule binds ("" = every package), except the
	// exempt ones.
	on, exempt []string
	forbid     []string // import paths, with everything below them
	deep       bool
	tests      bool // the imports of tests count too
}

const (
	gin       = "github.com/gin-gonic/gin"
	amqp      = "github.com/rabbitmq/amqp091-go"
	pgx       = "github.com/jackc/pgx/v5"
	goRedis   = "github.com/redis/go-redis/v9"
	sqlite    = "modernc.org/sqlite"
	container = "github.com/testcontainers/testcontainers-go"
	moby      = "github.com/moby/moby"
)

var rules = []rule{
	{
		name: "the receiver stands alone", reason: "roles are deployed apart; what they share lies below them",
		on: []string{"receiver"}, forbid: []string{module + "/publisher", module + "/consumer"}, deep: true,
	},
	{
		name: "the publisher stands alone", reason: "roles are deployed apart; what they share lies below them",
		on: []string{"publisher"}, forbid: []string{module + "/receiver", module + "/consumer"}, deep: true,
	},
	{
		name: "the consumer stands alone", reason: "roles are deployed apart; what they share lies below them",
		on: []string{"consumer"}, forbid: []string{module + "/receiver", module + "/publisher"}, deep: true,
	},
	{
		name: "Gin answers webhooks only", reason: "consumer and publisher run without HTTP in; the admin side is plain net/http",
		on:     []string{"consumer", "publisher", "internal/admin", "internal/rabbit", "internal/store", "internal/inbox", "internal/config", "internal/wire"},
		forbid: []string{gin}, deep: true,
	},
	{
		name: "Gin is imported by the receiver", reason: "one folder knows the web framework, so that it can be exchanged",
		exempt: []string{"receiver"}, forbid: []string{gin},
	},
	{
		name: "only internal/rabbit speaks AMQP", reason: "the client's traps (confirms, blocked, reconnects) are handled in one place",
		exempt: []string{"internal/rabbit"}, forbid: []string{amqp},
	},
	{
		name: "tests speak AMQP from outside", reason: "a test beside a part uses the part's own port; test/ looks at the broker as a stranger would",
		exempt: []string{"internal/rabbit", "internal/testenv", "test"}, forbid: []string{amqp}, tests: true,
	},
	{
		name: "drivers stay below internal/store", reason: "a store is one atomic thing behind a port; nobody else knows which database it is",
		exempt: []string{"internal/store", "internal/testenv"}, forbid: []string{pgx, goRedis, sqlite},
	},
	{
		name: "the container harness stays in internal/testenv", reason: "a product does not carry its test bench",
		exempt: []string{"internal/testenv"}, forbid: []string{container, moby},
	},
	{
		name: "no program links the test harness", reason: "a product does not carry its test bench",
		on: []string{"cmd"}, forbid: []string{container, moby, module + "/internal/testenv", "testing", "go.uber.org/goleak"}, deep: true,
	},
	{
		name: "composition is used by programs and tests", reason: "whoever imports the composition root links everything",
		exempt: []string{"cmd", "test", "internal/app"}, forbid: []string{module + "/internal/app"}, tests: true,
	},
}

func TestImportRules(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, p := range all(t) {
				for _, path := range r.broken(p) {
					t.Errorf("%s reaches %s: %s", p.name(), path, r.reason)
				}
			}
		})
	}
}

// broken returns what the package reaches against the rule.
func (r rule) broken(p pkg) []string {
	if (len(r.on) > 0 && !p.below(r.on...)) || p.below(r.exempt...) {
		return nil
	}
	reached := p.Imports
	if r.deep {
		reached = p.Deps
	}
	if r.tests {
		reached = slices.Concat(p.Imports, p.TestImports, p.XTestImports)
	}
	return slices.DeleteFunc(slices.Clone(reached), func(path string) bool { return !matches(path, r.forbid) })
}

// TestRulesBite breaks each rule on paper: a rule whose folder was renamed
// would otherwise hold for ever.
func TestRulesBite(t *testing.T) {
	names := map[string]bool{}
	for _, p := range all(t) {
		names[p.name()] = true
	}
	for _, r := range rules {
		on := "publisher"
		if len(r.on) > 0 {
			on = r.on[0]
		}
		bad := pkg{ImportPath: module + "/" + on, Imports: r.forbid[:1], Deps: r.forbid[:1]}
		if len(r.broken(bad)) == 0 {
			t.Errorf("%s: %s may import %s", r.name, on, r.forbid[0])
		}
		for _, folder := range slices.Concat(r.on, r.exempt) {
			if !slices.ContainsFunc(all(t), func(p pkg) bool { return p.below(folder) }) {
				t.Errorf("%s: there is no package in %s", r.name, folder)
			}
		}
	}
}

func TestRootImportsTheStandardLibraryOnly(t *testing.T) {
	for _, p := range all(t) {
		if p.name() != "." {
			continue
		}
		for _, path := range p.Deps {
			if !standard(path) && !strings.HasPrefix(path, "vendor/") {
				t.Errorf("the root package links %s: everyone imports the shared words, so they import nothing", path)
			}
		}
		return
	}
	t.Fatal("the root package is missing")
}
