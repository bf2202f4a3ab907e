package testenv

import (
	"crypto/rand"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// uniqueName is fit for a database and for a vhost, and recognisable as a
// test's should a killed run leave one behind.
func uniqueName() string { return "hookonce_test_" + strings.ToLower(rand.Text()[:12]) }

func databaseURL(t testing.TB, raw string, db int) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal("HOOKONCE_TEST_REDIS_URL is not a URL")
	}
	u.Path = "/" + strconv.Itoa(db)
	return u.String()
}
