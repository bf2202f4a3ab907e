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

func newMAC(secret []byte) *mac {
	m := &mac{}
	m.pool.New = func() any { return hmac.New(sha256.New, secret) }
	return m
}

// sum is the MAC over the parts, one after the other.
func (m *mac) sum(parts ...[]byte) [sha256.Size]byte {
	h := m.pool.Get().(hash.Hash)
	h.Reset()
	for _, part := range parts {
		h.Write(part)
	}
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	m.pool.Put(h)
	return sum
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
		return nil, fmt.Errorf("%w: no secret; set secrets:", ErrConfig)
	}
	return list, nil
}
