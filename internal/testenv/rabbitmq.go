package testenv

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testenv/server"
)

// createVhost makes a vhost of its own on the server for the test.
func createVhost(t testing.TB, amqp, api string) string {
	t.Helper()
	u, err := url.Parse(amqp)
	if err != nil {
		t.Fatal("the AMQP URL cannot be read; it must look like amqp://guest:guest@host:5672/")
	}
	user := "guest"
	if u.User != nil {
		user = u.User.Username()
	}
	name := uniqueName()
	must := func(method, path, body string) {
		t.Helper()
		if err := callAPI(api, method, path, body); err != nil {
			t.Fatalf("RabbitMQ's management API is needed for a vhost per test (rabbitmq-plugins enable rabbitmq_management, or set %s): %v",
				server.EnvRabbitMQAPI, err)
		}
	}
	must(http.MethodPut, "/api/vhosts/"+name, "")
	t.Cleanup(func() {
		if err := callAPI(api, http.MethodDelete, "/api/vhosts/"+name, ""); err != nil {
			t.Error(err)
		}
	})
	must(http.MethodPut, "/api/permissions/"+name+"/"+url.PathEscape(user), `{"configure":".*","write":".*","read":".*"}`)
	u.Path = "/" + name
	return u.String()
}

func callAPI(api, method, path, body string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(api, "/")+path, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s is not a URL", server.EnvRabbitMQAPI) // the parser's own error would print the password
	}
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer res.Body.Close()
	if res.StatusCode >= http.StatusMultipleChoices {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 500))
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, text)
	}
	return nil
}
