package config_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/config"
)

var update = flag.Bool("update", false, "write the golden files anew")

// dump writes every value of a configuration as a line "path = value".
func dump(b *strings.Builder, path string, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil(): // left out: it has no defaults
	case v.Kind() == reflect.Pointer:
		dump(b, path, v.Elem())
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[config.Rate]():
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := f.Tag.Get("yaml")
			if name == "-" {
				name = "(" + f.Name + ")"
			}
			dump(b, strings.TrimPrefix(path+"."+name, "."), v.Field(i))
		}
	case v.Kind() == reflect.Map:
		keys := map[string]reflect.Value{}
		for _, k := range v.MapKeys() {
			keys[k.String()] = v.MapIndex(k)
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			dump(b, path+"."+k, keys[k])
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Pointer:
		for i := range v.Len() {
			dump(b, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	default:
		fmt.Fprintf(b, "%s = %v\n", path, v.Interface())
	}
}

func golden(t *testing.T, name string, cfg *config.Config) {
	t.Helper()
	var b strings.Builder
	dump(&b, "", reflect.ValueOf(cfg))
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := b.String(), testFile(t, name); got != want {
		t.Errorf("%s differs (rewrite it with -update and read the difference); got:\n%s", name, got)
	}
}

// here returns to the package's folder for the golden files.
func here(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFirstRun: an empty folder, an empty file and a file of comments are the
// same complete configuration, the demo of the first run.
func TestFirstRun(t *testing.T) {
	back := here(t)
	t.Chdir(t.TempDir())
	none, err := config.Load(config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "sources:\nconsumers: {}\nstore:\n"} {
		if got := mustLoad(t, text, config.Options{}); !reflect.DeepEqual(got, none) {
			t.Errorf("%q: differs from no file at all: %+v", text, got)
		}
	}
	t.Chdir(back)
	golden(t, "first-run.golden", none)
}

// TestDefaults: what one source and one group leave out.
func TestDefaults(t *testing.T) {
	back := here(t)
	cfg := mustLoad(t, `
store: { kind: redis, redis: redis://127.0.0.1, claim_ttl: 30d }
broker: { kind: rabbitmq, url: amqp://guest:guest@127.0.0.1 }
inbox: { kind: postgres, postgres: postgres://127.0.0.1/shop }
sources:
  plain: { secrets: [ a ] }
  stripe: { provider: stripe, secrets: [ b ] }
consumers:
  g:
    match: [ plain.# ]
    effects:
      - name: one
        sql: delete from t
      - name: two
        forward: { url: "https://h/" }
      - name: three
        email: { smtp: "smtp://h", from: a@b.c, to: "json:to", subject: s, text: h.yaml, attachments: [ { name: a, path: "json:a" } ] }
        on_unknown: park
`, config.Options{})
	t.Chdir(back)
	golden(t, "defaults.golden", cfg)
}

func TestDefaultFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("hookonce.yaml", []byte("data_dir: ./elsewhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{})
	if err != nil || cfg.DataDir != "./elsewhere" || cfg.Inbox.SQLite != "elsewhere/demo.db" {
		t.Fatalf("got %+v, %v; want ./hookonce.yaml to be read", cfg, err)
	}
	_, err = config.Load(config.Options{File: "other.yaml"})
	wantProblems(t, err, "other.yaml: there is no such file: … --config")
	_, err = config.Load(config.Options{File: "."})
	wantProblems(t, err, ".: cannot be read (not a regular file) … make it a readable file")
}

// TestExplicitZero: a zero that is written down is not taken for the default.
func TestExplicitZero(t *testing.T) {
	_, err := load(t, `store: { max_outbox: 0, lease: 0s }
shutdown_timeout: 0s
sources: { a: { verify: none, respond: { status: 0 } } }
`, config.Options{})
	wantProblems(t, err,
		"h.yaml:1: store.lease: 0s must be between",
		"h.yaml:1: store.max_outbox: 0 is too small",
		"h.yaml:2: shutdown_timeout: must be more than 0",
		"h.yaml:3: sources.a.respond.status: 0 is not a success",
	)
}
