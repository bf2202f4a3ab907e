package rabbit_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/rabbit"
	"github.com/hookonce/hookonce/internal/testenv"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.issue("ca")
	return a
}

// issue makes a certificate, by itself for the first one, and names its files.
func (a *authority) issue(name string) (cert, key string) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	a.n++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.n), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: a.cert == nil,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, private
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	must(a.t, err)
	if a.cert == nil {
		a.cert, err = x509.ParseCertificate(der)
		must(a.t, err)
		a.key = private
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	must(a.t, err)
	cert, key = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	must(a.t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(a.t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
	return cert, key
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// secured puts TLS in front of a broker; clients need a certificate of the authority.
func secured(t *testing.T, a *authority, rawURL string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	must(t, err)
	cert, key := a.issue("broker")
	pair, err := tls.LoadX509KeyPair(cert, key)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	})
	must(t, err)
	var wg sync.WaitGroup
	upstream := u.Host
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { terminate(client, upstream) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	u.Scheme, u.Host = "amqps", l.Addr().String()
	return u.String()
}

// terminate carries one connection to the broker, in plain.
func terminate(client net.Conn, upstream string) {
	defer client.Close()
	broker, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	defer broker.Close()
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(broker, client); _ = broker.Close() })
	_, _ = io.Copy(client, broker)
	_ = client.Close()
	wg.Wait()
}

// TestTLS: the broker proves who it is, and so do we; renewed files count from
// the next connection on.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	through := secured(t, a, testenv.RabbitMQ(t))
	ca := filepath.Join(a.dir, "ca.pem")
	cert, key := a.issue("receiver")
	other := newAuthority(t)
	strangerCert, strangerKey := other.issue("stranger")
	reach := func(files rabbit.TLS) error {
		return rabbit.Reach(shortContext(t, 20*time.Second), rabbit.Config{URLs: []string{through}, TLS: files, Logger: quiet})
	}
	must(t, reach(rabbit.TLS{CA: ca, Cert: cert, Key: key}))
	for what, files := range map[string]rabbit.TLS{
		"an authority of ours that is not the broker's": {CA: filepath.Join(other.dir, "ca.pem"), Cert: cert, Key: key},
		"the system's authorities":                      {Cert: cert, Key: key},
		"no certificate":                                {CA: ca},
		"a stranger's certificate":                      {CA: ca, Cert: strangerCert, Key: strangerKey},
		"a file that is not there":                      {CA: ca + ".away"},
		"a key that belongs to another":                 {CA: ca, Cert: cert, Key: strangerKey},
		"no certificate in the file":                    {CA: key},
	} {
		if err := reach(files); err == nil || strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: %v", what, err)
		}
	}

	// The publisher starts with a stranger's files and heals when they are replaced.
	for from, to := range map[string]string{strangerCert: "used.pem", strangerKey: "used.key"} {
		copyFile(t, from, filepath.Join(a.dir, to))
	}
	p := rabbit.NewPublisher(rabbit.Config{URLs: []string{through}, Logger: quiet, TLS: rabbit.TLS{
		CA: ca, Cert: filepath.Join(a.dir, "used.pem"), Key: filepath.Join(a.dir, "used.key"),
	}})
	start(t, p)
	copyFile(t, key, filepath.Join(a.dir, "used.key"))
	copyFile(t, cert, filepath.Join(a.dir, "used.pem"))
	eventually(t, "connected with the new certificate", p.Connected)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, text, 0o600))
}

// TestRefreshedURLs: a password that changes is used from the next try on, and
// one of several addresses that answers is enough.
func TestRefreshedURLs(t *testing.T) {
	good := testenv.RabbitMQ(t)
	u, err := url.Parse(good)
	must(t, err)
	u.User = url.UserPassword(u.User.Username(), "not the password")
	refused := make(chan struct{})
	var once sync.Once
	var mu sync.Mutex
	urls := []string{u.String()}
	p := rabbit.NewPublisher(rabbit.Config{
		URLs: urls, Logger: quiet,
		Refresh: func() []string { mu.Lock(); defer mu.Unlock(); return urls },
		OnState: func(up bool, err error) {
			if !up && err != nil && !strings.Contains(err.Error(), "not the password") {
				once.Do(func() { close(refused) })
			}
		},
	})
	start(t, p)
	select {
	case <-refused:
	case <-testContext(t).Done():
		t.Fatal("a wrong password was not refused")
	}
	mu.Lock()
	urls = []string{"amqp://guest:guest@127.0.0.1:1/", good}
	mu.Unlock()
	eventually(t, "connected with the new password", p.Connected)
	must(t, rabbit.Reach(testContext(t), rabbit.Config{URLs: []string{"amqp://127.0.0.1:1/", good}}))
	if err := rabbit.Reach(context.Background(), rabbit.Config{URLs: []string{u.String()}}); err == nil || strings.Contains(err.Error(), "not the password") {
		t.Errorf("reach with a wrong password: %v", err)
	}
}
