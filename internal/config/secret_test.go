package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/hookonce/hookonce/internal/config"
)

const hidden = "hunter2"

// TestSecretsHidden prints a whole configuration in every way there is.
func TestSecretsHidden(t *testing.T) {
	cfg := mustLoad(t, `store: { kind: redis, redis: redis://u:hunter2@h }
broker: { kind: rabbitmq, url: [ "amqp://u:hunter2@h", "amqp://u:hunter2@i" ] }
inbox: { kind: postgres, postgres: "postgres://u:hunter2@h/d" }
audit: { dsn: "postgres://u:hunter2@h/d" }
admin: { token: hunter2 }
sources: { s: { provider: stripe, secrets: [ hunter2, "${S}" ] } }
`, config.Options{Getenv: env("S", hidden)})
	s := cfg.Sources["s"]
	type wrapped struct{ C *config.Config }
	for _, v := range []any{cfg, *cfg, wrapped{cfg}, []any{cfg, s}, cfg.Store, cfg.Broker, cfg.Broker.URL, cfg.Admin, s, *s, s.Secrets, s.Secrets[0], &s.Secrets[0]} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, hidden) || strings.Contains(got, "68756e74") {
				t.Errorf("%s of %T shows the secret: %s", verb, v, got)
			}
		}
		var logs bytes.Buffer
		slog.New(slog.NewTextHandler(&logs, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&logs, nil)).Info("x", "v", v)
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		inYAML, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		logs.Write(text)
		logs.Write(inYAML)
		if strings.Contains(logs.String(), hidden) {
			t.Errorf("%T is logged or encoded with the secret: %s", v, logs.String())
		}
	}
	if got := fmt.Sprintf("%v %#v %q [%v]", s.Secrets[0], s.Secrets[0], s.Secrets[0], config.Secret("")); got != `*** config.Secret("***") "***" []` {
		t.Errorf("got %s", got)
	}
}

// TestProblemsHideSecrets: what is wrong with a secret is said without it.
func TestProblemsHideSecrets(t *testing.T) {
	for _, text := range []string{
		"store: { redis: \"http://u:hunter2@h\" }\n",
		"store: { redis: \"redis://u:hunter2@h:port:x%zz\" }\n",
		"store: { redis: hunter2 }\n",
		"broker: { url: [ \"amqp://u:hunter2 @h\" ] }\n",
		"inbox: { postgres: \"postgres://u:hunter2@h:x%zz\" }\n",
		"inbox: { postgres: hunter2 }\n",
		"inbox: { postgres: \"hunter2 x=y\" }\n",
		"audit: { kind: postgres, dsn: \"mysql://hunter2@x\" }\n",
		"admin: { token: [ hunter2 ] }\n",
		"startup_timeout: ${S}\n",
		"receiver: { max_body: \"${S}\" }\n",
		"store: { max_outbox: \"1${S}\" }\n",
		"sources: { a: { verify: \"${S}\" } }\n",
		"sources: { a: { secrets: [ hunter2 } } }\n",
		"admin:\n  token: \"hunter2\n",
		"admin:\n  token: hunter2: x\n",
		"sources: { a: { secrets: { x: hunter2 } } }\n",
	} {
		_, err := load(t, text, config.Options{Getenv: env("S", hidden)})
		if err == nil {
			t.Errorf("%q: no problem", text)
		} else if strings.Contains(err.Error(), hidden) {
			t.Errorf("%q: the problem shows the secret: %v", text, err)
		}
	}
}
