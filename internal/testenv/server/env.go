package server

import (
	"fmt"
	"net"
	"net/url"
	"os"
)

// The variables that name servers which are already running.
const (
	EnvRedis    = "HOOKONCE_TEST_REDIS_URL"
	EnvPostgres = "HOOKONCE_TEST_POSTGRES_URL"
	EnvRabbitMQ = "HOOKONCE_TEST_AMQP_URL"
	// EnvRabbitMQAPI is the management API with credentials; by default that of
	// EnvRabbitMQ's host and user on port 15672.
	EnvRabbitMQAPI = "HOOKONCE_TEST_RABBITMQ_API"
)

var urlVariable = map[Kind]string{Redis: EnvRedis, Postgres: EnvPostgres, RabbitMQ: EnvRabbitMQ}

func fromEnvironment(kind Kind, raw string) (*Server, error) {
	s := &Server{URL: raw, From: "environment (" + urlVariable[kind] + ")", Shared: true}
	if kind != RabbitMQ {
		return s, nil
	}
	s.API = os.Getenv(EnvRabbitMQAPI)
	if s.API != "" {
		return s, nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s is not a URL", EnvRabbitMQ) // the parser's own error would print the password
	}
	api := url.URL{Scheme: "http", User: u.User, Host: net.JoinHostPort(u.Hostname(), "15672")}
	if api.User == nil {
		api.User = url.UserPassword("guest", "guest")
	}
	s.API = api.String()
	return s, nil
}
