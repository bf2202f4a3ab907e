package stringify_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/stringify"
)

// vectors are pairs of a text and what Node 20 answered to
// JSON.stringify(JSON.parse(text)), a line each.
func vectors(t testing.TB) [][2]string {
	f, err := os.Open("testdata/node.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all [][2]string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var v [2]string
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if len(all) < 10 {
		t.Fatalf("only %d vectors", len(all))
	}
	return all
}

func TestWritesWhatNodeWrites(t *testing.T) {
	for _, v := range vectors(t) {
		got, err := stringify.JSON([]byte(v[0]))
		if err != nil || string(got) != v[1] {
			t.Errorf("%s\n got %s, %v\nwant %s", v[0], got, err, v[1])
		}
	}
}

func TestRefusesWhatIsNoDocument(t *testing.T) {
	for _, text := range []string{"", " ", "{", `{"a":1}{"b":2}`, `{'a':1}`, "NaN", "01", strings.Repeat("[", 2000) + strings.Repeat("]", 2000)} {
		if got, err := stringify.JSON([]byte(text)); err == nil {
			t.Errorf("%.20q became %q", text, got)
		}
	}
}

// FuzzJSON: a result is JSON, and what has been rewritten stays as it is.
func FuzzJSON(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add([]byte(v[0]))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		once, err := stringify.JSON(text)
		if err != nil {
			return
		}
		if !json.Valid(once) {
			t.Fatalf("%q became %q, which is not JSON", text, once)
		}
		twice, err := stringify.JSON(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q, then %q: %v", once, twice, err)
		}
	})
}
