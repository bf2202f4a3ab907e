// Package testenv gives tests the real servers they need. A test asks for what
// it wants and gets something of its own; everything is gone when it ends:
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }
//
//	func TestClaim(t *testing.T) {
//		url := testenv.Redis(t)       // an empty Redis: appendonly, appendfsync always
//		dsn := testenv.Postgres(t)    // an empty database
//		amqp := testenv.RabbitMQ(t)   // an empty vhost
//	}
//
// A test that kills servers takes a private one:
//
//	redis := testenv.StartRedis(t)
//	redis.Kill()  // SIGKILL
//	redis.Start() // same port, same data
//
// Where the servers come from, in this order: the environment
// (HOOKONCE_TEST_REDIS_URL, HOOKONCE_TEST_POSTGRES_URL, HOOKONCE_TEST_AMQP_URL
// and HOOKONCE_TEST_RABBITMQ_API), a container engine, private local processes;
// otherwise the test fails with the line that installs them. No test is ever
// skipped. `make test` starts RabbitMQ and Postgres once for all packages
// (internal/testenv/harness); without it each test process starts its own on
// first use, and [Run] ends it.
//
// A Redis of the environment lends its databases 1 to 15, one a test and only
// those that are empty; they are flushed when their test ends.
package testenv
