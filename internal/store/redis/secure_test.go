package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/redis"
)

// work does all that a store does for its users.
func work(t *testing.T, s *redis.Store) {
	t.Helper()
	mustClaim(t, s, claimOf("a"), hookonce.New)
	c := claimOf("b")
	c.Previous = []hookonce.Key{{Source: "orders", ID: "old b"}}
	mustClaim(t, s, c, hookonce.New)
	mustClaim(t, s, claimOf("a"), hookonce.Duplicate)
	es := pending(t, s)
	if len(es) != 2 {
		t.Errorf("%d entries", len(es))
	}
	must(t, s.Settle(t.Context(), es))
	_, err := s.Adopt(t.Context(), 10)
	must(t, err)
	must(t, s.SetRecipe(t.Context(), "orders", "r"))
	_, err = s.Recipe(t.Context(), "orders")
	must(t, err)
	st, err := s.Stats(t.Context())
	if err != nil || st.Events != 0 {
		t.Errorf("stats %+v, %v", st, err)
	}
	must(t, s.Ping(t.Context()))
}

// TestLimitedUser: the documented rights are enough; CONFIG and INFO are not
// among them, and what could not be read is said.
func TestLimitedUser(t *testing.T) {
	t.Parallel()
	n := startNode(t, strings.Fields("--user hookonce on >s3cret ~idem:* ~hookonce:* -@all +@read +@write +@scripting +@connection +time +wait "+
		"--user elsewhere on >s3cret ~other:* +@all")...)
	at := func(user string) string { return fmt.Sprintf("redis://%s:s3cret@%s", user, n.addr()) }
	s := open(t, redis.Options{URL: at("hookonce")})
	work(t, s)
	w := strings.Join(s.Warnings(t.Context()), "\n")
	for _, what := range []string{"appendonly could not be read", "maxmemory-policy could not be read"} {
		if !strings.Contains(w, what) {
			t.Errorf("warnings %q, want %q", w, what)
		}
	}
	if strings.Contains(w, "s3cret") {
		t.Error("the password is shown")
	}
	_, err := redis.Open(t.Context(), redis.Options{URL: at("elsewhere")})
	if !errors.Is(err, hookonce.ErrUnknown) || !strings.Contains(err.Error(), "lacks a right") {
		t.Errorf("without rights: %v", err)
	}
	_, err = redis.Open(t.Context(), redis.Options{URL: at("nobody")})
	if !errors.Is(err, hookonce.ErrUnknown) || !strings.Contains(err.Error(), "refuses the user or password") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("unknown user: %v", err)
	}
}

// TestTLS: a server with a certificate of a private authority, which asks for
// one of ours.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	server, ours := ca.issue(t, dir, "server"), ca.issue(t, dir, "ours")
	port := freePort(t)
	startNode(t, "--tls-port", fmt.Sprint(port), "--tls-cert-file", server+".crt", "--tls-key-file", server+".key",
		"--tls-ca-cert-file", ca.file, "--tls-auth-clients", "yes")
	at := func(params ...string) string {
		q := url.Values{}
		for i := 0; i < len(params); i += 2 {
			q.Set(params[i], params[i+1])
		}
		return fmt.Sprintf("rediss://127.0.0.1:%d/0?%s", port, q.Encode())
	}
	cert := []string{"tls_cert", ours + ".crt", "tls_key", ours + ".key"}
	work(t, open(t, redis.Options{URL: at(append(cert, "tls_ca", ca.file)...)}))
	for name, u := range map[string]string{
		"unknown authority": at(cert...), "no certificate": at("tls_ca", ca.file),
		"no such file": at("tls_ca", dir+"/none"), "key alone": at("tls_key", ours+".key"), "not a certificate": at("tls_ca", ours+".key"),
	} {
		if _, err := redis.Open(t.Context(), redis.Options{URL: u}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// authority signs certificates for 127.0.0.1.
type authority struct {
	file string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	a := &authority{file: filepath.Join(dir, "ca.crt")}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &a.key.PublicKey, a.key)
	must(t, err)
	a.cert, err = x509.ParseCertificate(der)
	must(t, err)
	writePEM(t, a.file, "CERTIFICATE", der)
	return a
}

// issue writes NAME.crt and NAME.key, and returns their path without the ending.
func (a *authority) issue(t *testing.T, dir, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, &key.PublicKey, a.key)
	must(t, err)
	path := filepath.Join(dir, name)
	writePEM(t, path+".crt", "CERTIFICATE", der)
	keyDER, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	writePEM(t, path+".key", "EC PRIVATE KEY", keyDER)
	return path
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
