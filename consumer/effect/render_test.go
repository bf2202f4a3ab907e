package effect

import (
	"time"

	"github.com/hookonce/hookonce"
)

func renderBody(parse func(name, text string) (executor, error), text, body string) (string, error) {
	t, err := parse("t", text)
	if err != nil {
		return "", err
	}
	return render(t, newView(hookonce.Event{
		Key: hookonce.Key{Source: "shop", ID: "A-1"}, Type: "order.paid", Body: []byte(body),
		Header: map[string]string{"X-Shop": "loja 7"}, ReceivedAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
	}))
}
