package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"strings"
	"sync"
)

// mac computes HMAC-SHA256 under one secret. Its states are kept: setting one
// up costs more than a small body.
type mac struct{ pool sync.Pool }

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

// macs makes one mac for each secret that is not empty; there must be one.
func macs(secrets []string) ([]*mac, error) {
	var list []*mac
	for i, secret := range secrets {
		if secret == "" {
			continue
		}
		if strings.TrimSpace(secret) != secret {
			return nil, fmt.Errorf("%w: secret %d has white space around it (a newline from a file?); remove it", ErrConfig, i+1)
		}
		list = append(list, newMAC([]byte(secret)))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: no secret; list one under secrets", ErrConfig)
	}
	return list, nil
}
