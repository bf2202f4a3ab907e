package redis_test

import (
	"log/slog"
	"os"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/redis"
	"github.com/hookonce/hookonce/internal/store/storetest"
	"github.com/hookonce/hookonce/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{Instances: true, Foreign: true, Parallel: true, New: func(t *testing.T) storetest.Backend {
		url := testenv.Redis(t)
		return storetest.Backend{
			Open: func(t *testing.T, o storetest.Options) storetest.Store {
				return open(t, redis.Options{
					URL: url, Instance: o.Instance, Lease: o.Lease, MaxEvents: o.MaxEvents, MaxBytes: o.MaxBytes, Now: o.Now,
				})
			},
			Foreign: func(t *testing.T, key hookonce.Key, kind string) { foreign(t, client(t, url), key, kind) },
		}
	}})
}

func open(t testing.TB, o redis.Options) *redis.Store {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	s, err := redis.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// client is a plain connection to the server, to prepare and to look.
func client(t *testing.T, url string) *goredis.Client {
	t.Helper()
	o, err := goredis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := goredis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() }) // only reads and writes of a test
	return c
}

func foreign(t *testing.T, c *goredis.Client, key hookonce.Key, kind string) {
	t.Helper()
	name := "idem:" + key.Source + ":" + key.ID
	var err error
	switch kind {
	case "text":
		err = c.Set(t.Context(), name, "processing", 0).Err()
	case "list":
		err = c.LPush(t.Context(), name, "x").Err()
	case "damaged": // ours, cut short
		err = c.Set(t.Context(), name, "hk1"+"0123456789abcdef"+"0123456789abcdef"+"\x00\x00", 0).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}
