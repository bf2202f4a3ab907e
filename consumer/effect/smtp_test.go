package effect_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/mail"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// mailbox is a real SMTP server that keeps what it takes.
type mailbox struct {
	addr  string
	roots *x509.CertPool

	mu       sync.Mutex
	conns    map[net.Conn]bool
	taken    []letter
	logins   []string
	refuse   map[string]error // by stage: mail, rcpt, data (before the message), end (behind it)
	hangUp   string           // stage at which the connection is cut
	tlsLogin bool             // whether logins came over TLS
}

type letter struct {
	from string
	to   []string
	raw  []byte
	tls  bool
}

func (l letter) message(t *testing.T) *mail.Message {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(l.raw))
	if err != nil {
		t.Fatalf("not a message: %v\n%s", err, l.raw)
	}
	return m
}

// kinds of mailboxes.
const (
	plainBox = iota // no TLS at all
	startBox        // offers STARTTLS
	tlsBox          // TLS from the start
)

// newMailbox starts a server on loopback. logins: whether it offers AUTH.
func newMailbox(t *testing.T, kind int, logins bool) *mailbox {
	t.Helper()
	b := &mailbox{refuse: map[string]error{}, conns: map[net.Conn]bool{}}
	cert, roots := selfSigned(t)
	b.roots = roots
	var backend smtp.Backend = smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		s := &session{box: b, conn: c}
		if logins {
			return &authSession{s}, nil
		}
		return s, nil
	})
	s := smtp.NewServer(backend)
	s.Domain, s.AllowInsecureAuth, s.ErrorLog = "localhost", true, quiet
	s.ReadTimeout, s.WriteTimeout = 20*time.Second, 20*time.Second
	if kind == startBox {
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.addr = l.Addr().String()
	if kind == tlsBox {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}})
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return b
}

func (b *mailbox) at(stage string, s *session) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hangUp == stage {
		_ = s.conn.Conn().Close()
		return errors.New("hung up")
	}
	return b.refuse[stage]
}

func (b *mailbox) letters() []letter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]letter(nil), b.taken...)
}

// say makes the server answer a stage with a code.
func (b *mailbox) say(stage string, code int, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse[stage] = &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 1, 1}, Message: text}
}

type session struct {
	box  *mailbox
	conn *smtp.Conn
	now  letter
}

func (s *session) Reset()        { s.now = letter{} }
func (s *session) Logout() error { return nil }

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.now = letter{from: from}
	return s.box.at("mail", s)
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.now.to = append(s.now.to, to)
	return s.box.at("rcpt", s)
}

func (s *session) Data(r io.Reader) error {
	if err := s.box.at("data", s); err != nil {
		return err
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.now.raw = raw
	_, s.now.tls = s.conn.TLSConnectionState()
	s.box.mu.Lock()
	keep := s.box.refuse["end"] == nil
	if keep {
		s.box.taken = append(s.box.taken, s.now)
	}
	s.box.mu.Unlock()
	return s.box.at("end", s)
}

type authSession struct{ *session }

func (s *authSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *authSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		b := s.box
		b.mu.Lock()
		defer b.mu.Unlock()
		b.logins = append(b.logins, user+":"+password)
		_, b.tlsLogin = s.conn.TLSConnectionState()
		if err := b.refuse["auth"]; err != nil {
			return err
		}
		return nil
	}), nil
}

// selfSigned is a certificate for 127.0.0.1 and who vouches for it.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
