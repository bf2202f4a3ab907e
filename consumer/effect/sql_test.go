package effect_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer/effect"
	"github.com/hookonce/hookonce/internal/store/postgres"
	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }

// databases runs a test on each kind of inbox database.
func databases(t *testing.T, test func(t *testing.T, db *sql.DB, f effect.Flavor)) {
	t.Run("sqlite", func(t *testing.T) {
		db, err := sqlite.OpenDB(t.Context(), filepath.Join(t.TempDir(), "shop.db"))
		use(t, db, err, effect.SQLite, test)
	})
	t.Run("postgres", func(t *testing.T) {
		db, err := postgres.Open(t.Context(), testenv.Postgres(t), postgres.Options{})
		use(t, db, err, effect.Postgres, test)
	})
}

func use(t *testing.T, db *sql.DB, err error, f effect.Flavor, test func(*testing.T, *sql.DB, effect.Flavor)) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	test(t, db, f)
}

func event(body string) hookonce.Event {
	return hookonce.Event{
		Key: hookonce.Key{Source: "shop", ID: "A-1"}, Type: "order.paid", Body: []byte(body),
		Header:     map[string]string{"X-Shop": "loja 7"},
		ReceivedAt: time.Date(2026, 11, 30, 12, 0, 0, 5e6, time.UTC),
	}
}

// apply runs the effect in one transaction.
func apply(t *testing.T, db *sql.DB, s effect.SQL, e hookonce.Event) error {
	t.Helper()
	fill, err := s.Compile()
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	statements, err := fill(e)
	if err != nil {
		return err
	}
	for _, st := range statements {
		if _, err := tx.ExecContext(t.Context(), st.Text, st.Args...); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func TestParametersKeepWhatWasWritten(t *testing.T) {
	databases(t, func(t *testing.T, db *sql.DB, f effect.Flavor) {
		if _, err := db.ExecContext(t.Context(), `create table seen (
			id text, big bigint, price numeric(12,2), paid boolean, note text, missing text, shop text,
			event text, source text, type text, both_ids text, item text, raw text, at timestamp)`); err != nil {
			t.Fatal(err)
		}
		err := apply(t, db, effect.SQL{
			Statements: []string{
				"insert into seen (id, big, price, paid, note, missing, shop, event, source, type, both_ids, item, raw, at) " +
					"values (:id, :big, :price, :paid, :note, :missing, :shop, :key, :source, :type, :both, :item, :raw, :at)",
				"update seen set note = note || :suffix where id = :id",
			},
			Params: map[string]string{
				"id": "json:order.id", "big": "json:big", "price": "json:price", "paid": "json:paid", "note": "json:note",
				"missing": "json:order.nothing", "shop": "header:X-Shop", "key": "key", "source": "source", "type": "type",
				"both": "json:{order.id}:{big}", "item": "json:items.0", "raw": "body", "at": "received_at", "suffix": "json:suffix",
			},
			Flavor: f,
		}, event(`{"order":{"id":"A-1"},"big":9007199254740993,"price":10.50,"paid":true,"note":"caf\u00e9","items":[{"sku":"x"}],"suffix":"!"}`))
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			ID, Note, Shop, Event, Source, Type, Both, Item, Raw string
			Missing                                              *string
			Big                                                  int64
			Price                                                float64
			Paid                                                 bool
			At                                                   time.Time
		}
		row := db.QueryRowContext(t.Context(), "select id, big, price, paid, note, missing, shop, event, source, type, both_ids, item, raw, at from seen")
		if err := row.Scan(&got.ID, &got.Big, &got.Price, &got.Paid, &got.Note, &got.Missing, &got.Shop, &got.Event, &got.Source,
			&got.Type, &got.Both, &got.Item, &got.Raw, &got.At); err != nil {
			t.Fatal(err)
		}
		if got.ID != "A-1" || got.Big != 9007199254740993 || got.Price != 10.5 || !got.Paid || got.Note != "café!" || got.Missing != nil ||
			got.Shop != "loja 7" || got.Event != "shop/A-1" || got.Source != "shop" || got.Type != "order.paid" ||
			got.Both != "A-1:9007199254740993" || got.Item != `{"sku":"x"}` || !strings.HasPrefix(got.Raw, `{"order":`) ||
			!got.At.UTC().Equal(event("").ReceivedAt) {
			t.Errorf("stored %+v", got)
		}
	})
}

func TestABodyThatIsNoJSONGivesNullsNotFailures(t *testing.T) {
	databases(t, func(t *testing.T, db *sql.DB, f effect.Flavor) {
		if _, err := db.ExecContext(t.Context(), "create table seen (id text, event text)"); err != nil {
			t.Fatal(err)
		}
		s := effect.SQL{
			Statements: []string{"insert into seen values (:id, :key)"},
			Params:     map[string]string{"id": "json:order.id", "key": "key"}, Flavor: f,
		}
		for _, body := range []string{"", "hello", `{"order":`, `[1]`, `{"order":null}`} {
			if err := apply(t, db, s, event(body)); err != nil {
				t.Errorf("%q: %v", body, err)
			}
		}
		var nulls int
		if err := db.QueryRowContext(t.Context(), "select count(*) from seen where id is null and event = 'shop/A-1'").Scan(&nulls); err != nil || nulls != 5 {
			t.Errorf("%d rows, %v; want 5 with NULL", nulls, err)
		}
	})
}

func TestAFailingStatementLeavesNothing(t *testing.T) {
	databases(t, func(t *testing.T, db *sql.DB, f effect.Flavor) {
		if _, err := db.ExecContext(t.Context(), "create table seen (id text)"); err != nil {
			t.Fatal(err)
		}
		err := apply(t, db, effect.SQL{Statements: []string{"insert into seen values ('x')", "insert into nowhere values (1)"}, Flavor: f}, event("{}"))
		if err == nil || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("error %v, want one that names the table", err)
		}
		var n int
		if err := db.QueryRowContext(t.Context(), "select count(*) from seen").Scan(&n); err != nil || n != 0 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

func TestCompileTellsEveryProblemAtOnce(t *testing.T) {
	_, err := effect.SQL{
		Statements: []string{"insert into t values (:a, :b)", "", "select $1"},
		Params:     map[string]string{"a": "json:", "c": "nonsense"},
	}.Compile()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"params.a: ", "params.c: ", "sql[0]: parameter :b", "sql[1]: the statement is empty", "$1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if d := cmp.Diff(5, len(effect.Problems(err))); d != "" {
		t.Errorf("problems: %s\n%v", d, err)
	}
}
