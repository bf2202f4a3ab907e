package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"strings"
	"sync"
	"time"
)

// mac computes HMAC-SHA256 under one secret. Its states are kept: setting one
// up costs more than a small body.
type mac struct {
	pool    sync.Pool
	expires time.Time // zero: never
}

type macState struct {
	hash   hash.Hash
	prefix []byte
	sum    [sha256.Size]byte
}

func newMAC(secret []byte) *mac {
	m := &mac{}
	m.pool.New = func() any { return &macState{hash: hmac.New(sha256.New, secret)} }
	return m
}

// sum is the MAC over prefix and body.
func (m *mac) sum(prefix string, body []byte) [sha256.Size]byte {
	s := m.pool.Get().(*macState)
	defer m.pool.Put(s)
	s.hash.Reset()
	s.prefix = append(s.prefix[:0], prefix...)
	s.hash.Write(s.prefix)
	s.hash.Write(body)
	s.hash.Sum(s.sum[:0])
	return s.sum
}

// active tells whether a secret counts at a time.
func active(expires, now time.Time) bool { return expires.IsZero() || now.Before(expires) }

// errExpired says that no secret is left.
var errExpired = fmt.Errorf("%w: all secrets have expired; list a new one under secrets", ErrConfig)

// macs makes one mac for each secret that is not empty; there must be one.
func macs(s Settings) ([]*mac, error) {
	var list []*mac
	err := eachSecret(s, func(value string, expires time.Time) error {
		m := newMAC([]byte(value))
		m.expires = expires
		list = append(list, m)
		return nil
	})
	return list, err
}

// eachSecret hands over every secret that is not empty; there must be one.
func eachSecret(s Settings, take func(value string, expires time.Time) error) error {
	found := false
	for i, secret := range s.all() {
		if secret.Value == "" {
			continue
		}
		found = true
		if strings.TrimSpace(secret.Value) != secret.Value {
			return fmt.Errorf("%w: secret %d has white space around it (a newline from a file?); remove it", ErrConfig, i+1)
		}
		if err := take(secret.Value, secret.Expires); err != nil {
			return fmt.Errorf("%w: secret %d %w", ErrConfig, i+1, err)
		}
	}
	if !found {
		return fmt.Errorf("%w: no secret; list one under secrets", ErrConfig)
	}
	return nil
}
