package receiver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/hookonce/hookonce/internal/jsonpath"
)

// bodyHash computes the key "body".
type bodyHash struct {
	canonical bool
	ignore    [][]string
	window    time.Duration
}

func newBodyHash(cfg BodyKey) (bodyHash, error) {
	h := bodyHash{canonical: cfg.Canonical, window: cfg.Window}
	if h.window == 0 {
		h.window = defaultWindow
	}
	if h.window < 0 {
		return h, fmt.Errorf("body: window %s is negative", h.window)
	}
	if len(cfg.Ignore) > 0 && !cfg.Canonical {
		return h, fmt.Errorf("body: ignore needs canonical: true; raw bytes have no paths")
	}
	for _, text := range cfg.Ignore {
		path, err := jsonpath.Parse(text)
		if err != nil {
			return h, fmt.Errorf("body: ignore: %w", err)
		}
		h.ignore = append(h.ignore, path.Names())
	}
	return h, nil
}

// key is the hash as part of a key. doc is the body when it is valid JSON.
func (h bodyHash) key(body, doc []byte) string {
	if h.canonical && doc != nil {
		if canonical, err := h.rewrite(doc); err == nil {
			body = canonical
		}
	}
	return "sha256:" + hexSum(body)
}

// rewrite is the document with sorted names, without white space and without
// the ignored paths.
func (h bodyHash) rewrite(doc []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf"))))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	for _, path := range h.ignore {
		remove(v, path)
	}
	return json.Marshal(v)
}

// remove takes the value at path out of v; an array's item becomes null, so
// that the others keep their places.
func remove(v any, path []string) {
	last := len(path) == 1
	switch node := v.(type) {
	case map[string]any:
		if last {
			delete(node, path[0])
			return
		}
		remove(node[path[0]], path[1:])
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(node) {
			return
		}
		if last {
			node[i] = nil
			return
		}
		remove(node[i], path[1:])
	}
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
