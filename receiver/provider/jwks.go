package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// keysFor is how long fetched keys are used before they are fetched anew.
	keysFor = time.Hour
	// keysAgain is how soon an unknown key makes us fetch again: a forged key id
	// must not make us call the provider for each request.
	keysAgain = time.Minute
	// keysTimeout bounds one fetch, maxKeys its size.
	keysTimeout = 5 * time.Second
	maxKeys     = 1 << 20
)

// published are keys that a provider publishes at an address: fetched when
// first needed, kept, and fetched again when they are old or when one is asked
// for that is not among them (rotation). While the address is away, the keys
// that are known stay good.
type published[K any] struct {
	url    string
	client *http.Client
	parse  func([]byte) (K, error)

	// fetching is held by who fetches: one at a time.
	fetching sync.Mutex
	mu       sync.Mutex
	known    known[K]
}

// known is what was fetched.
type known[K any] struct {
	keys    K
	have    bool
	fetched time.Time // the last fetch that gave keys
	tried   time.Time // the last fetch
	err     error     // of the last fetch
}

func newPublished[K any](s Settings, byDefault string, parse func([]byte) (K, error)) *published[K] {
	p := &published[K]{url: byDefault, client: s.Client, parse: parse}
	if s.KeysURL != "" {
		p.url = s.KeysURL
	}
	if p.client == nil {
		p.client = keysClient()
	}
	return p
}

// keysClient fetches what is needed once an hour: it keeps no connection.
func keysClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives = true
	return &http.Client{
		Transport: t, Timeout: keysTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// get returns the keys. With missing, the ones of before lack the key asked for.
// Who has keys that are merely old does not wait for somebody else's fetch.
func (p *published[K]) get(now time.Time, missing bool) (K, error) {
	k := p.look()
	if !k.wants(now, missing) {
		return k.result()
	}
	if k.have && !missing {
		if !p.fetching.TryLock() {
			return k.result()
		}
	} else {
		p.fetching.Lock()
	}
	defer p.fetching.Unlock()
	if k = p.look(); k.wants(now, missing) { // else somebody has fetched meanwhile
		keys, err := p.fetch()
		k.tried, k.err = now, err
		if err == nil {
			k.keys, k.have, k.fetched = keys, true, now
		}
		p.mu.Lock()
		p.known = k
		p.mu.Unlock()
	}
	return k.result()
}

func (p *published[K]) look() known[K] {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known
}

// wants tells whether it is time to fetch.
func (k *known[K]) wants(now time.Time, missing bool) bool {
	since := now.Sub(k.tried)
	if !k.tried.IsZero() && since >= 0 && since < keysAgain {
		return false
	}
	return !k.have || missing || now.Sub(k.fetched) >= keysFor
}

func (k *known[K]) result() (K, error) {
	if !k.have {
		return k.keys, fmt.Errorf("%w: the provider's keys cannot be had: %w", ErrConfig, k.err)
	}
	return k.keys, nil
}

func (p *published[K]) fetch() (keys K, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), keysTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return keys, err
	}
	r.Header.Set("Accept", "application/json")
	w, err := p.client.Do(r)
	if err != nil {
		return keys, err
	}
	defer w.Body.Close()
	if w.StatusCode != http.StatusOK {
		return keys, fmt.Errorf("%s answered %s", p.url, w.Status)
	}
	body, err := io.ReadAll(io.LimitReader(w.Body, maxKeys+1))
	if err != nil {
		return keys, err
	}
	if len(body) > maxKeys {
		return keys, fmt.Errorf("%s answered more than %d bytes", p.url, maxKeys)
	}
	return p.parse(body)
}

// keysInTexts reads a list of public keys of a format that is not documented:
// every text of the document that is a public key is one.
func keysInTexts(doc []byte) ([]ringKey, error) {
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		return nil, err
	}
	var keys []ringKey
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if pub, err := parsePublicKey(v); err == nil && kindOf(pub) == "rsa" {
				keys = append(keys, ringOf(pub, sha256Hash))
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(v)
	if len(keys) == 0 {
		return nil, errors.New("no public key in the list")
	}
	return keys, nil
}
