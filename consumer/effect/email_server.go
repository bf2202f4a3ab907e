package effect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/hookonce/hookonce/consumer"
)

// The schemes of an SMTP URL, with their ports.
const (
	opportunistic = "smtp"
	startTLS      = "smtp+tls"
	implicitTLS   = "smtps"
)

var smtpPorts = map[string]string{opportunistic: "25", startTLS: "587", implicitTLS: "465"}

// server is an SMTP server as a URL names it.
type server struct {
	scheme, host, port string
	user, password     string
	tls                *tls.Config
	near               func(net.Conn) bool // whether a connection stays on this machine
}

// server reads the URL. Its problems never show it: it may hold a password.
func (p *problems) server(setting, text string, roots *x509.CertPool) *server {
	u, err := url.Parse(text)
	switch {
	case text == "":
		p.bad(setting, "is needed: the server, like smtp+tls://user:password@mail.example.com:587")
		return nil
	case err != nil || smtpPorts[u.Scheme] == "":
		p.bad(setting, "is not a URL that begins with smtp://, smtp+tls:// or smtps://: check it for characters that need percent-escapes, too")
		return nil
	case u.Hostname() == "":
		p.bad(setting, "names no host: write %s://host:port", u.Scheme)
		return nil
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		p.bad(setting, "has something behind the port: write %s://host:port", u.Scheme)
		return nil
	}
	s := &server{scheme: u.Scheme, host: u.Hostname(), port: u.Port(), near: loopbackPeer}
	if s.port == "" {
		s.port = smtpPorts[u.Scheme]
	} else if n, err := strconv.Atoi(s.port); err != nil || n < 1 || n > 65535 {
		p.bad(setting, "has a port that is none: 1 to 65535")
	}
	if u.User != nil {
		s.user = u.User.Username()
		s.password, _ = u.User.Password()
		if s.user == "" || s.password == "" {
			p.bad(setting, "has half of a login: write user:password@ in front of the host, or neither")
		}
	}
	s.tls = &tls.Config{ServerName: s.host, MinVersion: tls.VersionTLS12, RootCAs: roots}
	// Whoever can present a false certificate here could also hide STARTTLS: as
	// long as plain text would be good enough, checking gives nothing and keeps
	// relays with certificates of their own from being used.
	s.tls.InsecureSkipVerify = s.scheme == opportunistic && (s.user == "" || s.loopback())
	return s
}

func (s *server) name() string { return net.JoinHostPort(s.host, s.port) }

// loopback tells whether the server is on this machine by the name it was given.
func (s *server) loopback() bool {
	addr, err := netip.ParseAddr(s.host)
	return err == nil && addr.Unmap().IsLoopback() || strings.EqualFold(s.host, "localhost")
}

// send delivers one e-mail on a connection of its own. Until the end of the
// message has been sent, a failure means that nothing was delivered.
func (s *server) send(ctx context.Context, m *message) error {
	ended := false
	err := s.dialogue(ctx, m, &ended)
	if !ended {
		err = consumer.NotBegun(err)
	}
	return err
}

// dialogue says in ended that it came to the end of the message.
func (s *server) dialogue(ctx context.Context, m *message, ended *bool) error {
	c, closeNow, err := s.connect(ctx)
	if err != nil {
		return s.notTaken(ctx, "connect", err)
	}
	defer closeNow()
	if err := c.Mail(envelope(m.from)); err != nil {
		return s.refusal(ctx, "MAIL FROM", err)
	}
	for _, rcpt := range slices.Concat(m.to, m.cc, m.bcc) {
		if err := c.Rcpt(envelope(rcpt)); err != nil {
			return s.refusal(ctx, "RCPT TO", err)
		}
	}
	w, err := c.Data()
	if err != nil {
		return s.refusal(ctx, "DATA", err)
	}
	if _, err := m.mime().WriteTo(w); err != nil {
		return s.notTaken(ctx, "DATA", err)
	}
	*ended = true
	if err := w.Close(); err != nil {
		if code(err) == 0 {
			return consumer.Unknown(s.notTaken(ctx, "answer to the message", err))
		}
		return s.refusal(ctx, "the message", err)
	}
	_ = c.Quit() // it has taken the message: what it says now changes nothing
	return nil
}

func envelope(a *mail.Address) string { return (&mail.Address{Address: a.Address}).String() }

// connect dials, and says hello, TLS and login as the URL wants it. The
// connection is closed when ctx ends: the library looks at it only while it dials.
func (s *server) connect(ctx context.Context) (*smtp.Client, func(), error) {
	var conn net.Conn
	closeConn := func() {}
	dial := func(dialing context.Context, network, _ string) (net.Conn, error) {
		var err error
		if conn, err = (&net.Dialer{}).DialContext(dialing, network, s.name()); err != nil {
			return nil, err
		}
		raw := conn
		stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
		closeConn = func() { stop(); _ = raw.Close() }
		if s.scheme == implicitTLS {
			secured := tls.Client(raw, s.tls)
			return secured, secured.HandshakeContext(dialing)
		}
		return raw, nil
	}
	opts := []gomail.Option{
		gomail.WithDialContextFunc(dial), gomail.WithTLSPolicy(tlsPolicies[s.scheme]), gomail.WithTLSConfig(s.tls.Clone()),
	}
	if deadline, ok := ctx.Deadline(); ok {
		opts = append(opts, gomail.WithTimeout(max(time.Until(deadline), time.Millisecond)))
	}
	if s.user != "" {
		opts = append(opts, gomail.WithSMTPAuthCustom(&login{server: s, conn: func() net.Conn { return conn }}))
	}
	client, err := gomail.NewClient(s.host, opts...)
	if err != nil {
		return nil, nil, err
	}
	c, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		closeConn()
		return nil, nil, err
	}
	return c, closeConn, nil
}

var tlsPolicies = map[string]gomail.TLSPolicy{
	opportunistic: gomail.TLSOpportunistic, startTLS: gomail.TLSMandatory, implicitTLS: gomail.NoTLS,
}

// login says user and password, only where nobody else hears them.
type login struct {
	server *server
	conn   func() net.Conn
	auth   smtp.Auth
}

var errPlainLogin = errors.New("the server offers no TLS, and user and password are not sent without: use smtp+tls:// or smtps://, or leave them out")

// Start chooses how to log in.
func (l *login) Start(info *smtp.ServerInfo) (string, []byte, error) {
	s := l.server
	if !info.TLS && !s.near(l.conn()) {
		return "", nil, errPlainLogin
	}
	switch {
	case slices.Contains(info.Auth, "PLAIN"):
		l.auth = smtp.PlainAuth("", s.user, s.password, s.host, true)
	case slices.Contains(info.Auth, "LOGIN"):
		l.auth = smtp.LoginAuth(s.user, s.password, s.host, true)
	case slices.Contains(info.Auth, "CRAM-MD5"):
		l.auth = smtp.CRAMMD5Auth(s.user, s.password)
	default:
		return "", nil, fmt.Errorf("the server takes none of the logins PLAIN, LOGIN and CRAM-MD5 (it offers %q)", strings.Join(info.Auth, " "))
	}
	return l.auth.Start(info)
}

// Next answers the server's questions.
func (l *login) Next(fromServer []byte, more bool) ([]byte, error) {
	return l.auth.Next(fromServer, more)
}

func loopbackPeer(c net.Conn) bool {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// code is the server's answer in an error, 0 when there was none.
func code(err error) int {
	var answer *textproto.Error
	if errors.As(err, &answer) {
		return answer.Code
	}
	return 0
}

// refusal is a failure with the e-mail on the table: a 5xx is the server's last
// word on it, unless it is about who we are.
func (s *server) refusal(ctx context.Context, to string, err error) error {
	out := s.notTaken(ctx, to, err)
	switch c := code(err); {
	case c == 530 || c == 534 || c == 535 || c == 538:
		return out
	case c >= 500:
		return consumer.Permanent(out)
	}
	return out
}

// notTaken is a failure without the e-mail's delivery.
func (s *server) notTaken(ctx context.Context, at string, err error) error {
	text := s.hide(err.Error())
	if c := code(err); c != 0 {
		return fmt.Errorf("%s: answered %s", at, text)
	}
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%s: %s: %w", at, class(cause), cause)
	}
	return fmt.Errorf("%s: %s: %s", at, class(err), text)
}

// hide takes out of a server's text what it repeats of the login.
func (s *server) hide(text string) string {
	text = strings.Map(func(r rune) rune {
		if control(string(r)) {
			return ' '
		}
		return r
	}, text)
	for _, secret := range nonEmpty([]string{
		s.password, base64.StdEncoding.EncodeToString([]byte(s.password)),
		base64.StdEncoding.EncodeToString([]byte("\x00" + s.user + "\x00" + s.password)),
	}) {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}
