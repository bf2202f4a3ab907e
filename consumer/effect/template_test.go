package effect_test

import (
	"strings"
	"testing"

	"github.com/hookonce/hookonce/consumer/effect"
)

const things = `{"id":"A-1","n":7,"total":10.50,"zero":0,"big":12345678901234567890,"none":null,"yes":true,"list":["a",null,{"x":"<y>"}],"o":{"k":"v"},"pct":"100%!(x"}`

func TestTemplatesPrintWhatTheEventSays(t *testing.T) {
	for text, want := range map[string]string{
		"{{ .json.id }} {{ .json.n }} {{ .json.total }} {{ .json.big }} {{ .json.yes }}":                                    "A-1 7 10.50 12345678901234567890 true",
		"{{ .key }} {{ .source }} {{ .type }}":                                                                              "shop/A-1 shop order.paid",
		`{{ index .headers "X-Shop" }} {{ .received_at.Format "02.01.2006" }}`:                                              "loja 7 30.11.2026",
		`{{ optional .json "none" }}|{{ optional .json "o.k" }}|{{ optional .json "list.0" }}|{{ optional .json "a.b.c" }}`: "|v|a|",
		`{{ printf "%.2f" (num .json.total) }} {{ if gt (num .json.total) 10.0 }}much{{ end }}`:                             "10.50 much",
		`{{ if .json.zero }}some{{ else }}none{{ end }}`:                                                                    "none",
		`{{ with optional .json "none" }}{{ . }}{{ else }}nothing{{ end }}`:                                                 "nothing",
		`{{ (index .json.list 2).x }} {{ index .json.list 2 "x" }}`:                                                         "<y> <y>",
		`{{ range $i, $x := .json.list }}{{ if eq $i 0 }}{{ $x }}{{ end }}{{ end }}`:                                        "a",
		`{{ define "a" }}{{ .json.id }}{{ end }}{{ template "a" . }}`:                                                       "A-1",
		`{{ print .json.id "-" .json.n }}{{ $x := .json.n }}{{ $x }}`:                                                       "A-1-77",
	} {
		if got, err := effect.RenderText(text, things); err != nil || got != want {
			t.Errorf("%s\n= %q, %v\nwant %q", text, got, err, want)
		}
	}
	if got, err := effect.RenderHTML(`<a href="/o?id={{ .json.id }}" title="{{ index .json.list 2 "x" }}">{{ .json.total }} {{ (index .json.list 2).x }}</a><script>var x = {{ .json.total }}</script>`, things); err != nil ||
		got != `<a href="/o?id=A-1" title="&lt;y&gt;">10.50 &lt;y&gt;</a><script>var x = "10.50"</script>` {
		t.Errorf("html: %q, %v", got, err)
	}
}

// Nothing may reach a customer that only a programmer understands.
func TestTemplatesFailOnWhatIsNotThere(t *testing.T) {
	for _, text := range []string{
		"{{ .json.missing }}", "{{ .json.none }}", "{{ .json.o.missing }}", "{{ .json.missing.deeper }}", "{{ .json.id.deeper }}", "{{ .jsno }}",
		`{{ index .json "missing" }}`, `{{ index .json.list 1 }}`, `{{ index .json.list 9 }}`, `{{ index .headers "X-Missing" }}`, "{{ .headers.Missing }}",
		"{{ range .json.list }}{{ . }}{{ end }}", "{{ .json.o }}", "{{ .json.list }}", "{{ with .json.none }}{{ . }}{{ end }}", "{{ if .json.missing }}x{{ end }}",
		`{{ printf "%s" (index .json.list 1) }}`, `{{ printf "%.2f" .json.n }}`, `{{ printf "%d" .json.total }}`, `{{ printf "%s" }}`, "{{ num .json.id }}", "{{ .json.missing | html }}",
		`{{ define "a" }}{{ .json.missing }}{{ end }}{{ template "a" . }}`, `{{ optional .json "a..b" }}`, "{{ print .json.o }}", "{{ println nil }}",
	} {
		for name, render := range map[string]func(string, string) (string, error){"text": effect.RenderText, "html": effect.RenderHTML} {
			got, err := render(text, things)
			if err == nil {
				t.Errorf("%s %s = %q", name, text, got)
			}
		}
	}
	if _, err := effect.RenderHTML("<a href='{{ .json.id }}", things); err == nil || !strings.Contains(err.Error(), "is no template") {
		t.Errorf("an open attribute is found only when it runs: %v", err)
	}
}

// FuzzTemplates: whatever an event says, a template prints all of it or fails.
func FuzzTemplates(f *testing.F) {
	f.Add(things)
	f.Add(`{"id":"{{ .json }}","n":1e400,"total":-0}`)
	f.Add(`[1]`)
	f.Add(`{"id":"` + "\u2028" + `"}`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, render := range []func(string, string) (string, error){effect.RenderText, effect.RenderHTML} {
			got, err := render(`{{ .json.id }}|{{ optional .json "n" }}|{{ printf "%v" .json.total }}`, body)
			if err == nil && (strings.Contains(got, "<no value>") || strings.Count(got, "|") < 2) {
				t.Errorf("%q gives %q", body, got)
			}
			if err != nil && got != "" {
				t.Errorf("%q fails and gives %q", body, got)
			}
		}
	})
}
