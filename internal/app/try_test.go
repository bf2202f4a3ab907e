package app

import (
	"os"
	"strings"
	"testing"
)

const trialConfig = `
store: { kind: redis, redis: "${REDIS_URL}" }
broker: { kind: rabbitmq, url: "${AMQP_URL}" }
inbox: { kind: postgres, postgres: "${DATABASE_URL}" }
sources:
  orders: { secrets: [ "${SECRET}" ], key: [ "header:X-Event-Id", "json:order.id" ], type: { from: "json:event", map: { paid: order.paid } }, entity: "json:order.id", version: "json:v" }
  other: { verify: none, type: =other.event }
consumers:
  tickets:
    match: [ "orders.order.paid" ]
    effects:
      - { name: ticket, sql: "insert into t values (:id, :n)", params: { id: "json:order.id", n: "json:none" }, once_per: "json:order.id" }
      - { name: mail, when: "json.order.total > 100", email: { smtp: "smtp://u:hunter2@h", from: a@b.c, to: "json:order.email", subject: "Order {{ .json.order.id }}", text: t.txt } }
      - { name: crm, forward: { url: "https://u:hunter2@h/in", secret: "${CRM_SECRET}" } }
  all:
    match: [ "#" ]
    effects:
      - { name: project, only_latest: true, sql: "delete from t" }
`

// inFolder makes a folder with files the working directory.
func inFolder(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEffectsTryPrintsWhatWouldHappen(t *testing.T) {
	inFolder(t, map[string]string{
		"hookonce.yaml": strings.Replace(trialConfig, "verify: none,", "verify: none, entity: \"json:id\", version: \"json:v\",", 1), "t.txt": "Total {{ .json.order.total }}",
		"paid.json":  `{"event":"paid","v":7,"order":{"id":"A-1","email":"ana@example.com","total":120.50}}`,
		"small.json": `{"event":"paid","v":7,"order":{"id":"A-2","email":"ana@example.com","total":1}}`,
		"whole.json": `{"key":"orders/E-9","type":"order.paid","headers":{"x-shop":"s"},"body":{"v":7,"order":{"id":"A-3","total":1}}}`,
		"lost.json":  `{"event":"paid","v":7,"order":{"id":"A-4","total":120}}`,
		"text.json":  `{"source":"other","body":"not json"}`,
	})
	for _, tt := range []struct {
		args  string
		code  int
		want  []string
		avoid string
	}{
		{"--event paid.json --source orders", 0, []string{
			"event orders/A-1, type order.paid", "== all, project", `only if no newer version of "A-1" than 7`, "delete from t", "== tickets, ticket",
			`once per: json:order.id = "A-1"`, "  :id = \"A-1\"", "  :n = NULL", "when: json.order.total > 100: true", "Subject: Order A-1", "Total 120.50",
			"POST https://h/in", "Idempotency-Key: orders/A-1/tickets/crm", "Hookonce-Attempt: 1/12",
		}, "hunter2"},
		{"--event small.json --source orders --group tickets", 0, []string{"when: json.order.total > 100: false", "skipped"}, "Subject"},
		{"--event whole.json", 0, []string{"event orders/E-9, type order.paid", "Hookonce-Key: orders/E-9", "Idempotency-Key: orders/E-9/tickets/crm"}, ""},
		{"--event paid.json --source orders --key orders/K-1 --type order.shipped --group tickets", 0, []string{"event orders/K-1, type order.shipped", "note: group tickets does not match orders.order.shipped"}, ""},
		{"--event lost.json --source orders", 1, []string{"FAILS: to: there is no text at json:order.email", "1 of the effects would fail on this event", "POST https://h/in"}, ""},
		{"--event text.json", 1, []string{"event other/try, type other.event", "FAILS: only_latest: there is no entity"}, "tickets"},
		{"--event paid.json", 2, []string{"which source is it from? name one with --source: orders, other"}, ""},
		{"", 2, []string{"which event? name a file"}, ""},
		{"--event missing.json --source orders", 3, []string{"missing.json: not found"}, ""},
		{"--event paid.json --source orders --group nobody", 3, []string{"group nobody: not found"}, ""},
	} {
		code, stdout, stderr := call(t, append([]string{"effects", "try"}, strings.Fields(tt.args)...)...)
		out := stdout + stderr
		if code != tt.code {
			t.Errorf("%s: exit %d, want %d\n%s", tt.args, code, tt.code, out)
		}
		for _, want := range tt.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s lacks %q:\n%s", tt.args, want, out)
			}
		}
		if tt.avoid != "" && strings.Contains(out, tt.avoid) {
			t.Errorf("%s shows %q:\n%s", tt.args, tt.avoid, out)
		}
	}
}

func TestEffectsTryTellsEveryProblemOfTheConfiguration(t *testing.T) {
	inFolder(t, map[string]string{"hookonce.yaml": strings.Replace(trialConfig, "> 100", ">", 1), "paid.json": "{}"})
	code, _, stderr := call(t, "effects", "try", "--event", "paid.json", "--source", "orders")
	for _, want := range []string{
		"hookonce.yaml:13: consumers.tickets.effects[1].email.text: t.txt cannot be read", "hookonce.yaml:13: consumers.tickets.effects[1].when: is no expression",
		"hookonce.yaml:18: consumers.all.effects[0].only_latest: source other (line 7) has no entity and version",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("lacks %q:\n%s", want, stderr)
		}
	}
	if code != 2 {
		t.Errorf("exit %d, want 2", code)
	}
}

func TestEffectsTryWantsAGroupThatMatches(t *testing.T) {
	inFolder(t, map[string]string{"e.json": `{"id":1}`, "hookonce.yaml": "sources: { a: { verify: none } }\nconsumers: { g: { match: [ a.paid ], effects: [ { name: e, sql: delete from t } ] } }\n"})
	code, _, stderr := call(t, "effects", "try", "--event", "e.json")
	if code != 3 || !strings.Contains(stderr, "a group that matches a.unknown: not found; name one with --group, or another type with --type") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
