package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
)

const effectsHead = "sources:\n  a: { verify: none, entity: \"json:id\", version: \"json:v\" }\n  b: { verify: none }\nconsumers:\n  g:\n    match: [ \"a.#\" ]\n    effects:\n    - name: e\n"

func TestEffects(t *testing.T) {
	email := func(fields string) string {
		return effectsHead + "      email:\n        smtp: smtp://h\n        from: a@b.c\n        to: \"json:to\"\n        subject: s\n" + fields
	}
	forward := func(fields string) string {
		return effectsHead + "      forward:\n        url: https://crm.example.com/x\n" + fields
	}
	sql := func(fields string) string { return effectsHead + "      sql: delete from t\n" + fields }
	runRules(t, []rule{
		{"forward", forward(""), 0, nil},
		{"two in one", forward("      sql: delete from t\n"), 0, []string{"h.yaml:8: consumers.g.effects[0]: has sql and forward: an effect does one thing"}},
		{"params of nothing", forward("      params: { a: key }\n"), 0, []string{"h.yaml:11: consumers.g.effects[0].params.a: no :a in the sql"}},
		{"forward, everything wrong", effectsHead + `      forward:
        url: ftp://h
        secret: whsec_???
        timeout: 0s
        rate: fast
        allow_private: [ 10.0.0.0/33, 127.0.0.1 ]
        success: json.ok ==
        headers: [ X-Shop, Host, "a b" ]
`, 0, []string{
			"h.yaml:10: consumers.g.effects[0].forward.url: is not a URL that begins with https:// or http://",
			"h.yaml:11: consumers.g.effects[0].forward.secret: is not whsec_ and base64 behind it",
			"h.yaml:12: consumers.g.effects[0].forward.timeout: must be more than 0",
			`h.yaml:13: consumers.g.effects[0].forward.rate: "fast" is not a rate: write a number and a unit, like 50/s`,
			`h.yaml:14: consumers.g.effects[0].forward.allow_private[0]: "10.0.0.0/33" is no network`,
			"h.yaml:15: consumers.g.effects[0].forward.success: is no expression (",
			"h.yaml:16: consumers.g.effects[0].forward.headers[1]: Host is not passed on",
			`h.yaml:16: consumers.g.effects[0].forward.headers[2]: "a b" is not a header's name`,
		}},
		{"private address", strings.Replace(forward(""), "crm.example.com", "10.1.2.3", 1), 0, []string{
			"h.yaml:10: consumers.g.effects[0].forward.url: 10.1.2.3 is no public address: where it is meant, set allow_private: [ 10.1.2.3/32 ]",
		}},
		{"private address, meant", strings.Replace(forward("        allow_private: 10.0.0.0/8\n"), "crm.example.com", "10.1.2.3", 1), 0, nil},
		{"email without a text", email(""), 0, []string{"h.yaml:9: consumers.g.effects[0].email.text: the e-mail says nothing"}},
		{"email without a file", email("        html: no/such.html\n"), 0, []string{"h.yaml:14: consumers.g.effects[0].email.html: no/such.html cannot be read (no such file or directory)"}},
		{"email, everything wrong", effectsHead + `      email:
        smtp: http://user:hunter2@h
        from: nobody
        to: [ "json:a..b", "x@y" , "z" ]
        reply_to: "{{ .json"
        subject: "{{ nofunc }}"
        text: h.yaml
        attachments: [ { content_type: pdf, path: order.pdf } ]
`, 0, []string{
			"h.yaml:10: consumers.g.effects[0].email.smtp: is not a URL that begins with smtp://",
			"h.yaml:11: consumers.g.effects[0].email.from: is not an address",
			"h.yaml:12: consumers.g.effects[0].email.to[0]: not a JSON path",
			`h.yaml:12: consumers.g.effects[0].email.to[2]: "z" is not an address`,
			"h.yaml:13: consumers.g.effects[0].email.reply_to: is no template (",
			`h.yaml:14: consumers.g.effects[0].email.subject: is no template (text:1: function "nofunc" not defined)`,
			"h.yaml:15: consumers.g.effects[0].email.text: is no template (",
			"h.yaml:16: consumers.g.effects[0].email.attachments[0].name: is needed",
			`h.yaml:16: consumers.g.effects[0].email.attachments[0].content_type: "pdf" is not a media type`,
			`h.yaml:16: consumers.g.effects[0].email.attachments[0].path: "order.pdf" is not a path`,
		}},
		{"half a login", strings.Replace(email("        text: /dev/null\n"), "smtp://h", "smtp://u@h/inbox", 1), 0, []string{
			"h.yaml:10: consumers.g.effects[0].email.smtp: has something behind the port",
			"h.yaml:14: consumers.g.effects[0].email.text: /dev/null cannot be read (not a regular file",
		}},
		{"unknown for sql", sql("      on_unknown: rerun\n      rerun_within: 1h\n"), 0, []string{
			"h.yaml:10: consumers.g.effects[0].on_unknown: a sql step commits with its record", "h.yaml:11: consumers.g.effects[0].rerun_within: a sql",
		}},
		{"on_unknown", forward("      on_unknown: retry\n"), 0, []string{`h.yaml:11: consumers.g.effects[0].on_unknown: "retry" is not known here`}},
		{"rerun_within", forward("      rerun_within: 0s\n"), 0, []string{"h.yaml:11: consumers.g.effects[0].rerun_within: must be more than 0"}},
		{"expressions", sql("      when: json.total >\n      once_per: order\n"), 0, []string{
			"h.yaml:10: consumers.g.effects[0].when: is no expression (", "h.yaml:11: consumers.g.effects[0].once_per: is the same for every event",
		}},
		{"unknown name in an expression", sql("      when: jsno.total > 0\n"), 0, []string{"h.yaml:10: consumers.g.effects[0].when: is no expression (unknown name jsno"}},
		{"good expressions", sql("      when: json.order.items[0].price >= 10.5 and not (type contains \"test\") or headers[\"x-shop\"] == \"a\"\n      once_per: \"json:{order.id}:{header:X-Item}\"\n"), 0, nil},
		{"only_latest", sql("      only_latest: true\n"), 0, nil},
		{"only_latest, one source of two", strings.Replace(sql("      only_latest: true\n"), "\"a.#\"", "\"*.paid\"", 1), 0, []string{
			"h.yaml:10: consumers.g.effects[0].only_latest: source b (line 3) has no entity and version",
		}},
		{"only_latest without sources", "consumers:\n  g:\n    match: [ \"#\" ]\n    effects: [ { name: e, sql: delete from t, only_latest: true } ]\n", 0, []string{
			"h.yaml:4: consumers.g.effects[0].only_latest: no source says what its events are versions of",
		}},
		{"too short for the rate", forward("        rate: 1/m\n      timeout: 1m\n"), 0, []string{
			"h.yaml:12: consumers.g.effects[0].timeout: 1m0s is too short for 16 events that wait their turn under rate 1/m and take 10s each: leave timeout out, or give it 16m10s",
		}},
		{"receiver", email("        text: missing.txt\n") + "broker: { kind: rabbitmq, url: amqp://h }\n", config.ReceiverRole, nil},
	})
}

func TestAnEffectWithARateHasTheTimeToWaitForIt(t *testing.T) {
	for rate, want := range map[string]time.Duration{"50/s": time.Minute, "10/m": 16*6*time.Second + 20*time.Second} {
		cfg := mustLoad(t, effectsHead+fmt.Sprintf("      forward: { url: https://h, rate: %s }\n", rate), config.Options{})
		if got := cfg.Consumers["g"].Effects[0].Timeout; got != want {
			t.Errorf("%s: timeout %s, want %s", rate, got, want)
		}
	}
}

// Neither a problem nor a dump of the configuration shows a login or a secret.
func TestEffectsNeverShowTheirSecrets(t *testing.T) {
	for _, smtp := range []string{"smtp://u:hunter2@h", "smtp://u:hunter2@h/path", "smtp://u:hunter2@h:99999", "http://u:hunter2@h", "smtp://u:hunter2@", "smtp://u:hunter2%zz@h"} {
		for _, url := range []string{"https://u:hunter2@h/", "https://u:hunter2@", "ftp://u:hunter2@h", "https://u:hunter2@10.0.0.1", "https://u:hunter2@h/#a", "https://u:hunter2%zz@h"} {
			file := write(t, effectsHead+fmt.Sprintf("      email: { smtp: \"%s\", from: a@b.c, to: a@b.c, subject: s, text: t.txt }\n    - name: f\n      forward: { url: \"%s\", secret: [ whsec_hunter2! , \"${S}\" ] }\n", smtp, url))
			if err := os.WriteFile("t.txt", []byte("hello"), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(config.Options{File: file, Getenv: env("S", "hunter2")})
			if err == nil {
				t.Fatalf("%s, %s: no problem", smtp, url)
			}
			e := config.Email{SMTP: config.Secret(smtp)}
			f := config.Forward{URL: config.Secret(url), Secret: config.SecretList{"hunter2"}}
			if text := fmt.Sprintf("%v %+v %v %+v %+v %s", err, e, f, &f, cfg, f); strings.Contains(text, "hunter2") {
				t.Errorf("%s, %s:\n%s", smtp, url, text)
			}
		}
	}
}
