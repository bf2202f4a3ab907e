package testenv_test

import (
	"context"
	"net/http"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }

func TestEachTestHasItsOwnRedis(t *testing.T) {
	first, second := testenv.Redis(t), testenv.Redis(t)
	for _, url := range []string{first, second} {
		client := redisClient(t, url)
		if n, err := client.DBSize(t.Context()).Result(); err != nil || n != 0 {
			t.Fatalf("a fresh Redis has %d keys, %v; want 0", n, err)
		}
		if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	for range 2 {
		conn, err := pgx.Connect(t.Context(), testenv.Postgres(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "create table tickets (order_id text)"); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEachTestHasItsOwnVhost(t *testing.T) {
	if first, second := testenv.RabbitMQ(t), testenv.RabbitMQ(t); first == second {
		t.Fatalf("both tests got %s", first)
	}
}

func TestRedisComesBackWithItsDataAfterKill(t *testing.T) {
	s := testenv.StartRedis(t)
	client := redisClient(t, s.URL)
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Fatal("it still answers after Kill")
	}
	s.Start()
	if got, err := client.Get(t.Context(), "k").Result(); err != nil || got != "v" {
		t.Fatalf("after Kill and Start k = %q, %v; want v", got, err)
	}
	s.Stop()
	s.Start()
}

func TestPostgresComesBackWithItsDataAfterKill(t *testing.T) {
	s := testenv.StartPostgres(t)
	query(t, s.URL, "create table tickets as select 1 as n")
	s.Kill()
	s.Start()
	query(t, s.URL, "insert into tickets values (2)")
	s.Stop()
	s.Start()
	query(t, s.URL, "drop table tickets")
	s.Kill() // and nothing of it may be left in the kernel
}

func TestRabbitMQComesBackAfterKill(t *testing.T) {
	s := testenv.StartRabbitMQ(t)
	s.Kill()
	if res, err := http.Get(s.API + "/api/vhosts"); err == nil {
		_ = res.Body.Close()
		t.Fatal("it still answers after Kill")
	}
	s.Start()
}

func query(t *testing.T, dsn, statement string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatal(err)
	}
}

func redisClient(t *testing.T, url string) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(opts)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
