package testenv

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// leaseDatabase lends the test one of the databases 1 to 15 of a server that
// others use too. Only an empty one is lent, so that nobody's data is flushed;
// the lease is a key in database 0 that expires when its owner was killed.
func leaseDatabase(ctx context.Context, t testing.TB, url string) string {
	t.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal("HOOKONCE_TEST_REDIS_URL cannot be read; it must look like redis://host:6379")
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		for db := 1; db <= 15; db++ {
			ok, err := tryLease(ctx, *opts, db)
			if err != nil {
				t.Fatalf("lend database %d of HOOKONCE_TEST_REDIS_URL: %v", db, err)
			}
			if ok {
				t.Cleanup(func() { returnDatabase(t, *opts, db) })
				return databaseURL(t, url, db)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("every database 1 to 15 of HOOKONCE_TEST_REDIS_URL is lent or not empty; flush the ones that tests may use")
		}
	}
}

func leaseKey(db int) string { return fmt.Sprintf("hookonce-testenv:database:%d", db) }

func tryLease(ctx context.Context, opts redis.Options, db int) (bool, error) {
	desk := redis.NewClient(at(opts, 0))
	defer desk.Close()
	got, err := desk.SetNX(ctx, leaseKey(db), "lent", 15*time.Minute).Result()
	if err != nil || !got {
		return false, err
	}
	room := redis.NewClient(at(opts, db))
	defer room.Close()
	size, err := room.DBSize(ctx).Result()
	if err == nil && size == 0 {
		return true, nil
	}
	if back := desk.Del(ctx, leaseKey(db)).Err(); err == nil {
		err = back
	}
	return false, err
}

func returnDatabase(t testing.TB, opts redis.Options, db int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	room := redis.NewClient(at(opts, db))
	defer room.Close()
	if err := room.FlushDB(ctx).Err(); err != nil {
		t.Errorf("flush the lent Redis database: %v", err)
	}
	desk := redis.NewClient(at(opts, 0))
	defer desk.Close()
	if err := desk.Del(ctx, leaseKey(db)).Err(); err != nil {
		t.Errorf("give back the lent Redis database: %v", err)
	}
}

func at(opts redis.Options, db int) *redis.Options {
	opts.DB = db
	return &opts
}
