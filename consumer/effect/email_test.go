package effect_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/consumer/effect"
)

// mailer compiles an e-mail to a mailbox; templates are files of a new folder.
func mailer(t *testing.T, e effect.Email, text, html string) *effect.Mailer {
	t.Helper()
	e.Dir = t.TempDir()
	for name, content := range map[string]string{"t.txt": text, "t.html": html} {
		if err := os.WriteFile(filepath.Join(e.Dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text != "" {
		e.Text = "t.txt"
	}
	if html != "" {
		e.HTML = "t.html"
	}
	if e.From == "" {
		e.From = "Tickets <tickets@example.com>"
	}
	if e.To == nil {
		e.To = []string{"json:order.email"}
	}
	if e.Subject == "" {
		e.Subject = "Your ticket {{ .json.order.id }}"
	}
	m, err := e.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const order = `{"order":{"id":"A-1","email":"ana@example.com","name":"Ana <b>","total":10.50,"pdf":"JVBERi0xLjQK","cc":["bob@example.com","eva@example.com"]}}`

func TestEmailArrivesAsTheTemplatesSay(t *testing.T) {
	box := newMailbox(t, startBox, false)
	m := mailer(t, effect.Email{
		SMTP: "smtp://" + box.addr, CC: []string{"json:order.cc"}, BCC: []string{"archive@example.com"}, ReplyTo: "Box Office <{{ .json.order.id }}@example.com>",
		Subject:     "Ihr Ticket für {{ .json.order.id }}",
		Attachments: []effect.Attachment{{Name: "ticket-{{ .json.order.id }}.pdf", ContentType: "application/pdf", Path: "json:order.pdf"}},
		Now:         func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) },
	}, "Hello {{ .json.order.name }}, {{ .json.order.total }} EUR\n", "<p>Hello {{ .json.order.name }}</p>\n")
	if err := m.Do(t.Context(), paid(order)); err != nil {
		t.Fatal(err)
	}
	letters := box.letters()
	if len(letters) != 1 {
		t.Fatalf("%d letters", len(letters))
	}
	l := letters[0]
	if d := cmp.Diff([]string{"ana@example.com", "bob@example.com", "eva@example.com", "archive@example.com"}, l.to); d != "" || l.from != "tickets@example.com" || !l.tls {
		t.Errorf("from %s, TLS %v, to: %s", l.from, l.tls, d)
	}
	msg := l.message(t)
	subject, err := new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{
		"From": msg.Header.Get("From"), "To": msg.Header.Get("To"), "Cc": msg.Header.Get("Cc"), "Bcc": msg.Header.Get("Bcc"),
		"Reply-To": msg.Header.Get("Reply-To"), "Subject": subject, "Message-Id": msg.Header.Get("Message-Id"), "Date": msg.Header.Get("Date"),
		"Auto-Submitted": msg.Header.Get("Auto-Submitted"), "User-Agent": msg.Header.Get("User-Agent"),
	}
	if d := cmp.Diff(map[string]string{
		"From": `"Tickets" <tickets@example.com>`, "To": "<ana@example.com>", "Cc": "<bob@example.com>, <eva@example.com>", "Bcc": "",
		"Reply-To": `"Box Office" <A-1@example.com>`, "Subject": "Ihr Ticket für A-1", "Message-Id": "<" + m.MessageID(paid(order).Key) + ">",
		"Date": "Mon, 30 Nov 2026 12:00:00 +0000", "Auto-Submitted": "auto-generated", "User-Agent": "",
	}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]string{
		"text/plain": "Hello Ana <b>, 10.50 EUR", "text/html": "<p>Hello Ana &lt;b&gt;</p>", "application/pdf ticket-A-1.pdf": "%PDF-1.4",
	}, parts(t, msg)); d != "" {
		t.Error(d)
	}
}

// parts are a message's leaves by media type and file name, decoded.
func parts(t *testing.T, msg *mail.Message) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(contentType, encoding, disposition string, r io.Reader)
	walk = func(contentType, encoding, disposition string, r io.Reader) {
		kind, params, err := mime.ParseMediaType(contentType)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(kind, "multipart/") {
			mr := multipart.NewReader(r, params["boundary"])
			for {
				p, err := mr.NextPart() // decodes quoted-printable
				if err != nil {
					return
				}
				walk(p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), p.Header.Get("Content-Disposition"), p)
			}
		}
		if encoding == "base64" {
			r = base64.NewDecoder(base64.StdEncoding, r)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, d, err := mime.ParseMediaType(disposition); err == nil && d["filename"] != "" {
			kind += " " + d["filename"]
		}
		out[kind] = strings.TrimSpace(string(b))
	}
	walk(msg.Header.Get("Content-Type"), msg.Header.Get("Content-Transfer-Encoding"), "", msg.Body)
	return out
}

func TestEmailHasOneMessageIDForAllTriesOfAStep(t *testing.T) {
	box := newMailbox(t, plainBox, false)
	m := mailer(t, effect.Email{SMTP: "smtp://" + box.addr}, "hi", "")
	other := paid(order)
	other.Key = "shop/A-2/tickets/mail-ticket"
	for _, try := range []consumer.Try{paid(order), paid(order), other} {
		if err := m.Do(t.Context(), try); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]int{}
	for _, l := range box.letters() {
		ids[l.message(t).Header.Get("Message-Id")]++
	}
	form := regexp.MustCompile(`^<[0-9a-f]{32}@example\.com>$`)
	for id := range ids {
		if !form.MatchString(id) {
			t.Errorf("Message-ID %s", id)
		}
	}
	if len(ids) != 2 || ids["<"+m.MessageID(other.Key)+">"] != 1 {
		t.Errorf("Message-IDs: %v", ids)
	}
}

func TestEmailTLSIsAsTheURLWantsIt(t *testing.T) {
	plain, start, implicit := newMailbox(t, plainBox, true), newMailbox(t, startBox, true), newMailbox(t, tlsBox, true)
	for _, tt := range []struct {
		name, url string
		box       *mailbox
		trusted   bool
		tls       bool
		fails     string
	}{
		{"smtp without STARTTLS", "smtp://", plain, false, false, ""},
		{"smtp with STARTTLS", "smtp://", start, false, true, ""},
		{"smtp, login to loopback without TLS", "smtp://ana:p%40ss@", plain, false, false, ""},
		{"smtp, login with STARTTLS", "smtp://ana:p%40ss@", start, false, true, ""},
		{"smtp+tls without STARTTLS", "smtp+tls://ana:p%40ss@", plain, true, false, "does not support STARTTLS"},
		{"smtp+tls", "smtp+tls://ana:p%40ss@", start, true, true, ""},
		{"smtp+tls, unknown authority", "smtp+tls://", start, false, true, "tls: "},
		{"smtps", "smtps://ana:p%40ss@", implicit, true, true, ""},
		{"smtps, unknown authority", "smtps://", implicit, false, true, "tls: "},
		{"smtps to a server without", "smtps://", plain, true, true, "tls: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := effect.Email{SMTP: tt.url + tt.box.addr}
			if tt.trusted {
				e.RootCAs = tt.box.roots
			}
			before, logins := len(tt.box.letters()), len(tt.box.logins)
			err := mailer(t, e, "hi", "").Do(t.Context(), paid(order))
			letters := tt.box.letters()
			if tt.fails != "" {
				if got := fateOf(t, err); got != retried || !strings.Contains(err.Error(), tt.fails) || len(letters) != before {
					t.Errorf("%+v %v, %d letters", got, err, len(letters)-before)
				}
				if len(tt.box.logins) != logins {
					t.Error("the login was sent")
				}
				return
			}
			if err != nil || len(letters) != before+1 || letters[before].tls != tt.tls {
				t.Fatalf("%v, %d letters: %+v", err, len(letters)-before, letters)
			}
			if strings.Contains(tt.url, "@") && (len(tt.box.logins) != logins+1 || tt.box.logins[logins] != "ana:p@ss" || tt.box.tlsLogin != tt.tls) {
				t.Errorf("logins %q, TLS %v", tt.box.logins, tt.box.tlsLogin)
			}
		})
	}
}

// A login goes over TLS, or stays on this machine.
func TestEmailSendsNoLoginInTheOpen(t *testing.T) {
	box := newMailbox(t, plainBox, true)
	m := mailer(t, effect.Email{SMTP: "smtp://ana:hunter2@" + box.addr}, "hi", "")
	m.PretendFarAway()
	err := m.Do(t.Context(), paid(order))
	if got := fateOf(t, err); got != retried || !strings.Contains(err.Error(), "user and password are not sent without") {
		t.Errorf("%+v %v", got, err)
	}
	if len(box.logins)+len(box.letters()) != 0 {
		t.Errorf("logins %q, %d letters", box.logins, len(box.letters()))
	}
}

func TestEmailAnswersOfTheServer(t *testing.T) {
	for _, tt := range []struct {
		stage string
		code  int
		want  fate
	}{
		{"auth", 535, retried},
		{"mail", 421, retried},
		{"mail", 450, retried},
		{"mail", 530, retried},
		{"mail", 550, permanent},
		{"rcpt", 451, retried},
		{"rcpt", 550, permanent},
		{"data", 452, retried},
		{"data", 554, permanent},
		{"end", 421, retried},
		{"end", 451, retried},
		{"end", 552, permanent},
	} {
		t.Run(fmt.Sprint(tt.stage, tt.code), func(t *testing.T) {
			box := newMailbox(t, plainBox, true)
			box.say(tt.stage, tt.code, "because of hunter2")
			m := mailer(t, effect.Email{SMTP: "smtp://ana:hunter2@" + box.addr}, "hi", "")
			err := m.Do(t.Context(), paid(order))
			if d := cmp.Diff(tt.want, fateOf(t, err), cmp.AllowUnexported(fate{})); d != "" {
				t.Errorf("%v: %s", err, d)
			}
			if !strings.Contains(err.Error(), fmt.Sprint(tt.code)) || !strings.Contains(err.Error(), "because of ***") {
				t.Errorf("error %q", err)
			}
			if len(box.letters()) != 0 {
				t.Error("the server has it all the same")
			}
		})
	}
}

// Until the end of the message was sent, a lost connection is certain: nothing
// was delivered. Behind it nobody knows.
func TestEmailLostConnections(t *testing.T) {
	for stage, want := range map[string]fate{"mail": retried, "rcpt": retried, "end": unknown} {
		box := newMailbox(t, plainBox, false)
		box.hangUp = stage
		m := mailer(t, effect.Email{SMTP: "smtp://" + box.addr}, "hi", "")
		if d := cmp.Diff(want, fateOf(t, m.Do(t.Context(), paid(order))), cmp.AllowUnexported(fate{})); d != "" {
			t.Errorf("%s: %s", stage, d)
		}
	}
	nobody := mailer(t, effect.Email{SMTP: "smtp://127.0.0.1:1"}, "hi", "")
	err := nobody.Do(t.Context(), paid(order))
	if got := fateOf(t, err); got != retried || !strings.Contains(err.Error(), "refused: ") {
		t.Errorf("%+v %v", got, err)
	}
	silent := mailer(t, effect.Email{SMTP: "smtp://" + silentListener(t), Timeout: 100 * time.Millisecond}, "hi", "")
	err = silent.Do(t.Context(), paid(order))
	if got := fateOf(t, err); got != retried || !strings.Contains(err.Error(), "timeout: ") {
		t.Errorf("%+v %v", got, err)
	}
}

func TestEmailWhatCannotBeSaidIsPermanent(t *testing.T) {
	box := newMailbox(t, plainBox, false)
	for _, tt := range []struct {
		name  string
		email effect.Email
		text  string
		body  string
		want  string
	}{
		{"no address", effect.Email{}, "hi", `{"order":{"id":"A-1"}}`, "to: there is no text at json:order.email"},
		{"null address", effect.Email{}, "hi", `{"order":{"id":"A-1","email":null}}`, "to: there is no text at json:order.email"},
		{"no JSON", effect.Email{}, "hi", "x=1", "to: there is no text at json:order.email"},
		{"an object", effect.Email{}, "hi", `{"order":{"id":"A-1","email":{"a":"b"}}}`, "to: there is no text"},
		{"a list with a number", effect.Email{}, "hi", `{"order":{"id":"A-1","email":["a@b.c",7]}}`, "to: there is no text"},
		{"an empty list", effect.Email{}, "hi", `{"order":{"id":"A-1","email":[]}}`, "to: the event names nobody"},
		{"no address but a text", effect.Email{}, "hi", `{"order":{"id":"A-1","email":"ana"}}`, "is not one e-mail address"},
		{"several addresses", effect.Email{}, "hi", `{"order":{"id":"A-1","email":"ana@example.com, eva@example.com"}}`, "is not one e-mail address"},
		{"a header in an address", effect.Email{}, "hi", `{"order":{"id":"A-1","email":"ana@example.com\r\nBcc: eva@example.com"}}`, "has a line break"},
		{"a header in a name", effect.Email{}, "hi", `{"order":{"id":"A-1","email":"\"x\nBcc: eva@example.com\" <ana@example.com>"}}`, "has a line break"},
		{"a header in the subject", effect.Email{}, "hi", `{"order":{"id":"A\r\nBcc: eva@example.com","email":"ana@example.com"}}`, "subject: has a line break"},
		{"no subject", effect.Email{}, "hi", `{"order":{"email":"ana@example.com"}}`, `subject: text:1:20: executing "text" at <.json.order.id>: map has no entry for key "id"`},
		{"no value", effect.Email{}, "{{ .json.order.name }}", `{"order":{"id":"A-1","email":"ana@example.com"}}`, `t.txt:1:8: executing "t.txt" at <.json.order.name>: map has no entry`},
		{"no attachment", effect.Email{Attachments: []effect.Attachment{{Name: "a.pdf", Path: "json:pdf"}}}, "hi", order, "attachments[0]: there is no text at json:pdf"},
		{"no base64", effect.Email{Attachments: []effect.Attachment{{Name: "a.pdf", Path: "json:order.name"}}}, "hi", order, "attachments[0]: the text at json:order.name is not base64"},
		{"a path as a name", effect.Email{Attachments: []effect.Attachment{{Name: "{{ .json.order.email }}/../x", Path: "json:order.pdf"}}}, "hi", order, "attachments[0]: the name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.email.SMTP = "smtp://" + box.addr
			err := mailer(t, tt.email, tt.text, "").Do(t.Context(), paid(tt.body))
			if got := fateOf(t, err); got != permanent || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v %v, want %q", got, err, tt.want)
			}
		})
	}
	if n := len(box.letters()); n != 0 {
		t.Errorf("%d letters were sent", n)
	}
}

func TestEmailNobodyNeedsToBeNamed(t *testing.T) {
	box := newMailbox(t, plainBox, false)
	m := mailer(t, effect.Email{
		SMTP: "smtp://" + box.addr, CC: []string{`{{ optional .json "order.nobody" }}`}, ReplyTo: `{{ optional .json "order.nobody" }}`,
	}, "hi", "")
	if err := m.Do(t.Context(), paid(order)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"ana@example.com"}, box.letters()[0].to); d != "" {
		t.Error(d)
	}
}

func TestEmailPreviewShowsTheLetterAndNoSecret(t *testing.T) {
	m := mailer(t, effect.Email{
		SMTP: "smtps://ana:hunter2@mail.example.com", Attachments: []effect.Attachment{{Name: "a.pdf", Path: "json:order.pdf"}},
	}, "Hello {{ .json.order.name }}\n", "<p>{{ .json.order.name }}</p>")
	var b strings.Builder
	if err := m.Preview(&b, paid(order)); err != nil {
		t.Fatal(err)
	}
	want := `through mail.example.com:465
From: "Tickets" <tickets@example.com>
To: <ana@example.com>
Subject: Your ticket A-1
Message-ID: <` + m.MessageID(paid(order).Key) + `>

Hello Ana <b>

<p>Ana &lt;b&gt;</p>

[attached: a.pdf, application/octet-stream, 9 bytes]
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

func TestEmailReachesIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Logf("no IPv6 loopback here (%v): the URL alone is checked", err)
		mailer(t, effect.Email{SMTP: "smtp://[::1]:25"}, "hi", "")
		return
	}
	defer l.Close()
	come := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_ = c.Close()
		}
		come <- err
	}()
	err = mailer(t, effect.Email{SMTP: "smtp://" + l.Addr().String()}, "hi", "").Do(t.Context(), paid(order))
	if got := fateOf(t, err); got != retried {
		t.Errorf("%+v %v", got, err)
	}
	if err := <-come; err != nil {
		t.Error(err)
	}
}
