package provider

import "github.com/hookonce/hookonce/internal/jsonpath"

func telegram() Preset {
	return Preset{
		Name: "telegram", Title: "Telegram Bot API", Confidence: "high",
		Docs:     "https://core.telegram.org/bots/api#setwebhook",
		Verifies: "X-Telegram-Bot-Api-Secret-Token, a static token; the body is not signed",
		Secrets:  "the secret_token of setWebhook",
		Trap: "update_id counts for one bot: give each bot a source of its own. message_id counts within a chat only. The answer's body is " +
			"executed as a call of the Bot API where it says method=: leave it empty.",
		Verifier: headerSecret("X-Telegram-Bot-Api-Secret-Token"),
		Keys:     []string{"json:update_id"},
		Types:    []string{"context:update"},
		Created:  "json:message.date", Entity: "json:message.chat.id",
		Split: telegramKind,
		Sample: tokenSample("X-Telegram-Bot-Api-Secret-Token",
			`{"update_id":"{id}","message":{"message_id":1,"date":{seconds},"chat":{"id":1},"text":"hi"}}`),
	}
}

// telegramKind says which kind of update the body is: the name of the one
// member beside update_id.
func telegramKind(body []byte, _ int) ([]Item, bool, error) {
	root, ok := jsonpath.Root(body)
	if !ok || root.Kind != jsonpath.Object {
		return nil, false, nil
	}
	var context object
	root.Each(func(name string, _ jsonpath.Value) bool {
		if name == "update_id" {
			return true
		}
		context.text("update", name)
		return false
	})
	return []Item{{Raw: body, Context: context.bytes()}}, false, nil
}
