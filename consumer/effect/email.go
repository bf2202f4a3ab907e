package effect

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"strings"
	"time"

	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/jsonpath"
)

// Email is the effect "email": one message over SMTP.
//
// From, To, CC, BCC, ReplyTo, Subject and the attachments' names are texts,
// paths ("json:order.email", "header:X-Email") or templates
// ("Your ticket {{ .json.order.id }}").
type Email struct {
	// SMTP is the server: smtp:// (STARTTLS when it is offered, port 25),
	// smtp+tls:// (STARTTLS always, 587) or smtps:// (TLS from the start, 465),
	// with user:password@ if it wants them.
	SMTP string
	// From is one address, the same for every event.
	From        string
	To, CC, BCC []string
	ReplyTo     string
	Subject     string
	// Text and HTML are template files below Dir; at least one.
	Text, HTML  string
	Dir         string
	Attachments []Attachment
	// Timeout bounds one sending, waiting for Rate not counted. 30s.
	Timeout time.Duration
	// Rate bounds how often this process sends.
	Rate Rate
	// RootCAs vouch for the server; nil: the system's.
	RootCAs *x509.CertPool
	// Now is the clock; time.Now.
	Now func() time.Time
}

// Attachment is a file that the event's body holds as base64.
type Attachment struct {
	// Name is the file's name: a text, a path or a template.
	Name string
	// ContentType is its media type; application/octet-stream.
	ContentType string
	// Path is where the base64 is: "json:order.pdf".
	Path string
}

const (
	defaultEmailTimeout = 30 * time.Second
	// maxSubject bounds a subject, in bytes.
	maxSubject = 2000
)

// Mailer is a compiled [Email]. It is safe for use by many goroutines.
type Mailer struct {
	Email
	server      *server
	from        *mail.Address
	to, cc, bcc []phrase
	replyTo     *phrase
	subject     phrase
	text, html  executor
	files       []attachment
	throttle    throttle
}

type attachment struct {
	name        phrase
	contentType string
	path        jsonpath.Path
}

// Compile checks the effect and reads its templates; all problems are in the
// error, see [Problems].
func (e Email) Compile() (*Mailer, error) {
	var p problems
	m := &Mailer{Email: e, throttle: newThrottle(e.Rate)}
	if m.Timeout <= 0 {
		m.Timeout = defaultEmailTimeout
	}
	if m.Now == nil {
		m.Now = time.Now
	}
	m.server = p.server("smtp", e.SMTP, e.RootCAs)
	m.from = p.sender("from", e.From)
	m.to = p.addresses("to", e.To)
	m.cc = p.addresses("cc", e.CC)
	m.bcc = p.addresses("bcc", e.BCC)
	if len(e.To)+len(e.CC)+len(e.BCC) == 0 {
		p.bad("to", "is needed: who gets the e-mail, like \"json:order.email\"")
	}
	if e.ReplyTo != "" {
		if one := p.addresses("reply_to", []string{e.ReplyTo}); len(one) == 1 {
			m.replyTo = &one[0]
		}
	}
	m.subject, _ = p.phrase("subject", e.Subject)
	if strings.TrimSpace(e.Subject) == "" {
		p.bad("subject", "is needed, like \"Your ticket {{ .json.order.id }}\"")
	} else if m.subject.fixed() && control(m.subject.literal) {
		p.bad("subject", "%v", errControl)
	}
	m.bodies(&p)
	for i, a := range e.Attachments {
		m.files = append(m.files, p.attachment(fmt.Sprintf("attachments[%d]", i), a))
	}
	return m, p.err()
}

func (m *Mailer) bodies(p *problems) {
	if m.Text == "" && m.HTML == "" {
		p.bad("text", "the e-mail says nothing: name a template file as text, as html, or both")
	}
	var err error
	if m.Text != "" {
		if text, ok := p.file("text", m.Dir, m.Text); ok {
			if m.text, err = parseText(m.Text, text); err != nil {
				p.bad("text", "%v", err)
			}
		}
	}
	if m.HTML != "" {
		if text, ok := p.file("html", m.Dir, m.HTML); ok {
			if m.html, err = parseHTML(m.HTML, text); err != nil {
				p.bad("html", "%v", err)
			}
		}
	}
}

func (p *problems) phrase(setting, text string) (phrase, bool) {
	out, err := parsePhrase(text)
	if err != nil {
		p.bad(setting, "%v", err)
	}
	return out, err == nil
}

// sender wants one plain address, whose domain the Message-ID takes.
func (p *problems) sender(setting, text string) *mail.Address {
	addr, err := mail.ParseAddress(text)
	if err != nil {
		p.bad(setting, "is not an address: write tickets@example.com, or \"Tickets <tickets@example.com>\"")
		return nil
	}
	if domain := domainOf(addr); strings.ContainsFunc(domain, func(r rune) bool { return r > '~' }) {
		p.bad(setting, "has letters in its domain that e-mail cannot carry: write the domain in its xn-- form")
	}
	return addr
}

func domainOf(a *mail.Address) string { return a.Address[strings.LastIndexByte(a.Address, '@')+1:] }

// addresses reads recipients. Those that are the same for every event are
// checked now.
func (p *problems) addresses(setting string, list []string) []phrase {
	out := make([]phrase, len(list))
	for i, text := range list {
		name := at(setting, i, len(list))
		var ok bool
		if out[i], ok = p.phrase(name, text); ok && out[i].fixed() {
			if _, err := address(out[i].literal); err != nil {
				p.bad(name, "%q is not an address: write ana@example.com, \"json:order.email\", or a template", out[i].literal)
			}
		}
	}
	return out
}

func (p *problems) attachment(setting string, a Attachment) attachment {
	out := attachment{contentType: "application/octet-stream"}
	if a.Name == "" {
		p.bad(setting+".name", "is needed: the file's name, like ticket.pdf")
	}
	out.name, _ = p.phrase(setting+".name", a.Name)
	if a.ContentType != "" {
		out.contentType = a.ContentType
		if !mediaType(a.ContentType) {
			p.bad(setting+".content_type", "%q is not a media type: write one like application/pdf", a.ContentType)
		}
	}
	path, ok := strings.CutPrefix(a.Path, "json:")
	var err error
	if out.path, err = jsonpath.Parse(path); !ok || err != nil {
		p.bad(setting+".path", "%q is not a path: write where the base64 is, like \"json:order.pdf\"", a.Path)
	}
	return out
}

// address reads one address; a list of several is refused, as a text from an
// event must not choose how many people get the e-mail.
func address(text string) (*mail.Address, error) {
	if control(text) {
		return nil, errControl
	}
	addr, err := mail.ParseAddress(text)
	if err != nil {
		return nil, errors.New("is not one e-mail address")
	}
	return addr, nil
}

// Do sends the e-mail once.
func (m *Mailer) Do(ctx context.Context, t consumer.Try) error {
	msg, err := m.compose(t)
	if err != nil {
		return fmt.Errorf("email: %w", err)
	}
	if err := m.throttle.wait(ctx, m.Timeout); err != nil {
		return fmt.Errorf("email: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, m.Timeout)
	defer cancel()
	if err := m.server.send(ctx, msg); err != nil {
		return fmt.Errorf("email through %s: %w", m.server.name(), err)
	}
	return nil
}

// MessageID is the same on every try of a step, so that a mailbox that has the
// e-mail can tell the next one as the same.
func (m *Mailer) MessageID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16]) + "@" + domainOf(m.from)
}

// Preview writes the e-mail that Do would send.
func (m *Mailer) Preview(w io.Writer, t consumer.Try) error {
	msg, err := m.compose(t)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "through %s\n", m.server.name())
	header := func(name string, list []*mail.Address) {
		for _, a := range list {
			fmt.Fprintf(w, "%s: %s\n", name, a)
		}
	}
	header("From", []*mail.Address{m.from})
	header("To", msg.to)
	header("Cc", msg.cc)
	header("Bcc", msg.bcc)
	header("Reply-To", msg.replyTo)
	fmt.Fprintf(w, "Subject: %s\nMessage-ID: <%s>\n", msg.subject, msg.id)
	if m.text != nil {
		fmt.Fprintf(w, "\n%s\n", strings.TrimRight(msg.text, "\n"))
	}
	if m.html != nil {
		fmt.Fprintf(w, "\n%s\n", strings.TrimRight(msg.html, "\n"))
	}
	for _, f := range msg.files {
		fmt.Fprintf(w, "\n[attached: %s, %s, %d bytes]\n", f.name, f.contentType, len(f.content))
	}
	return nil
}
