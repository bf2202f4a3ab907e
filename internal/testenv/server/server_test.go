package server_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/hookonce/hookonce/internal/testenv/server"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := server.CloseEngine(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func TestEnvironmentComesFirst(t *testing.T) {
	t.Setenv(server.EnvRedis, "redis://cache.example:6379")
	t.Setenv(server.EnvPostgres, "postgres://u@db.example/postgres")
	t.Setenv(server.EnvRabbitMQ, "amqp://user:word@mq.example:5673/")
	t.Setenv(server.EnvRabbitMQAPI, "")
	for kind, want := range map[server.Kind]string{
		server.Redis:    "redis://cache.example:6379",
		server.Postgres: "postgres://u@db.example/postgres",
		server.RabbitMQ: "amqp://user:word@mq.example:5673/",
	} {
		s, err := server.Open(t.Context(), kind)
		if err != nil {
			t.Fatal(err)
		}
		if s.URL != want || !s.Shared || !strings.HasPrefix(s.From, "environment (HOOKONCE_TEST_") {
			t.Errorf("%s: %s from %s, shared %v; want %s from the environment", kind, s.URL, s.From, s.Shared, want)
		}
		if err := s.Kill(t.Context()); err == nil {
			t.Errorf("%s: a server of the environment could be killed", kind)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestManagementAPIFollowsTheAMQPURL(t *testing.T) {
	tests := []struct{ amqp, api, want string }{
		{"amqp://user:word@mq.example:5673/", "", "http://user:word@mq.example:15672"},
		{"amqp://mq.example", "", "http://guest:guest@mq.example:15672"},
		{"amqp://[::1]/", "", "http://guest:guest@[::1]:15672"},
		{"amqp://mq.example", "https://admin:word@api.example", "https://admin:word@api.example"},
	}
	for _, tt := range tests {
		t.Setenv(server.EnvRabbitMQ, tt.amqp)
		t.Setenv(server.EnvRabbitMQAPI, tt.api)
		s, err := server.Open(t.Context(), server.RabbitMQ)
		if err != nil {
			t.Fatal(err)
		}
		if s.API != tt.want {
			t.Errorf("%s with %q: API %s, want %s", tt.amqp, tt.api, s.API, tt.want)
		}
	}
	t.Setenv(server.EnvRabbitMQ, "amqp://user:word@mq:port/%")
	t.Setenv(server.EnvRabbitMQAPI, "")
	if _, err := server.Open(t.Context(), server.RabbitMQ); err == nil || strings.Contains(err.Error(), "word") {
		t.Errorf("a broken URL: %v; want an error without the password", err)
	}
}

func TestWithoutAnySourceTheErrorSaysWhatToInstall(t *testing.T) {
	server.HideLocal(t)
	t.Setenv(server.EnvContainers, "off")
	if err := server.CloseEngine(); err != nil { // so that it is asked again
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.CloseEngine() })
	for kind, variable := range map[server.Kind]string{
		server.Redis: server.EnvRedis, server.Postgres: server.EnvPostgres, server.RabbitMQ: server.EnvRabbitMQ,
	} {
		t.Setenv(variable, "")
		_, err := server.Open(t.Context(), kind)
		if err == nil {
			t.Fatalf("%s came from nowhere", kind)
		}
		for _, want := range []string{variable, server.AptLine, "gcc libc6-dev"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", kind, err, want)
			}
		}
	}
}
