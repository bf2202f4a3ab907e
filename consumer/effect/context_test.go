package effect_test

import (
	"path/filepath"
	"testing"

	"github.com/hookonce/hookonce/consumer/effect"
	"github.com/hookonce/hookonce/internal/store/sqlite"
)

// TestContextIsAParameter: what the parents of a batch's item said can be
// written too, such as the payment that a refund belongs to.
func TestContextIsAParameter(t *testing.T) {
	db, err := sqlite.OpenDB(t.Context(), filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "create table refunds (payment text, refund text, missing text)"); err != nil {
		t.Fatal(err)
	}
	e := event(`{"id":"D1"}`)
	e.Context = []byte(`{"endToEndId":"E1"}`)
	if err := apply(t, db, effect.SQL{
		Statements: []string{"insert into refunds values (:payment, :refund, :missing)"}, Flavor: effect.SQLite,
		Params: map[string]string{"payment": "context:endToEndId", "refund": "json:id", "missing": "context:txid"},
	}, e); err != nil {
		t.Fatal(err)
	}
	var payment, refund string
	var missing *string
	if err := db.QueryRowContext(t.Context(), "select payment, refund, missing from refunds").Scan(&payment, &refund, &missing); err != nil {
		t.Fatal(err)
	}
	if payment != "E1" || refund != "D1" || missing != nil {
		t.Errorf("%q, %q, %v", payment, refund, missing)
	}
}
