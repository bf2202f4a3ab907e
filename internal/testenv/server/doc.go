// Package server starts and finds the real Redis, Postgres and RabbitMQ that
// tests run against. It knows nothing of package testing: the tests use it
// through internal/testenv, and `make test` through internal/testenv/harness.
//
// [Open] looks in this order and says in [Server.From] where it ended:
//
//  1. the environment: HOOKONCE_TEST_REDIS_URL, HOOKONCE_TEST_POSTGRES_URL,
//     HOOKONCE_TEST_AMQP_URL (and HOOKONCE_TEST_RABBITMQ_API);
//  2. a container engine, with an image that is there or can be pulled;
//  3. a private local process, from the binaries of the distribution (Linux);
//  4. otherwise an error with the one line that installs them.
//
// [Private] leaves out the environment and prefers the local process: such a
// server belongs to its caller alone and may be killed.
package server
