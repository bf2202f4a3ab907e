package effect

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/mail"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/jsonpath"
)

// message is one e-mail, ready to be sent.
type message struct {
	id               string
	from             *mail.Address
	to, cc, bcc      []*mail.Address
	replyTo          []*mail.Address
	subject          string
	text, html       string
	hasText, hasHTML bool
	files            []file
	date             time.Time
}

type file struct {
	name, contentType string
	content           []byte
}

// compose makes the e-mail of an event. What is wrong with it, no further try
// mends: every error is permanent.
func (m *Mailer) compose(t consumer.Try) (*message, error) {
	v := newView(t.Event)
	msg := &message{id: m.MessageID(t.Key), from: m.from, date: m.Now(), hasText: m.text != nil, hasHTML: m.html != nil}
	var err error
	for _, part := range []struct {
		name string
		from []phrase
		to   *[]*mail.Address
	}{{"to", m.to, &msg.to}, {"cc", m.cc, &msg.cc}, {"bcc", m.bcc, &msg.bcc}} {
		if *part.to, err = recipients(part.name, part.from, v); err != nil {
			return nil, err
		}
	}
	if len(msg.to)+len(msg.cc)+len(msg.bcc) == 0 {
		return nil, consumer.Permanent(errors.New("to: the event names nobody"))
	}
	if m.replyTo != nil {
		if msg.replyTo, err = recipients("reply_to", []phrase{*m.replyTo}, v); err != nil {
			return nil, err
		}
	}
	if msg.subject, err = m.subjectLine(v); err != nil {
		return nil, fmt.Errorf("subject: %w", err)
	}
	if m.text != nil {
		if msg.text, err = render(m.text, v); err != nil {
			return nil, err
		}
	}
	if m.html != nil {
		if msg.html, err = render(m.html, v); err != nil {
			return nil, err
		}
	}
	for i, a := range m.files {
		f, err := a.file(v)
		if err != nil {
			return nil, fmt.Errorf("attachments[%d]: %w", i, err)
		}
		msg.files = append(msg.files, f)
	}
	return msg, nil
}

// recipients are the addresses of an event; an empty text is none.
func recipients(setting string, from []phrase, v *view) ([]*mail.Address, error) {
	var out []*mail.Address
	for _, p := range from {
		texts, err := p.texts(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", setting, err)
		}
		for _, text := range texts {
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			addr, err := address(text)
			if err != nil {
				return nil, consumer.Permanent(fmt.Errorf("%s: the event's text %w", setting, err))
			}
			out = append(out, addr)
		}
	}
	return out, nil
}

func (m *Mailer) subjectLine(v *view) (string, error) {
	subject, err := m.subject.text(v)
	if err != nil {
		return "", err
	}
	subject = strings.TrimSpace(subject)
	switch {
	case control(subject):
		return "", consumer.Permanent(errControl)
	case len(subject) > maxSubject:
		return "", consumer.Permanent(fmt.Errorf("is longer than %d bytes", maxSubject))
	}
	return subject, nil
}

func (a attachment) file(v *view) (file, error) {
	name, err := a.name.text(v)
	if err != nil {
		return file{}, err
	}
	if name = strings.TrimSpace(name); name == "" || control(name) || strings.ContainsAny(name, `/\`) {
		return file{}, consumer.Permanent(errors.New("the name is empty, or has a slash or a control character"))
	}
	value, ok := a.path.Get(v.in.JSON)
	if !ok || value.Kind != jsonpath.String {
		return file{}, consumer.Permanent(fmt.Errorf("there is no text at json:%s", a.path))
	}
	content, err := decodeBase64(value.Text())
	if err != nil {
		return file{}, consumer.Permanent(fmt.Errorf("the text at json:%s is not base64", a.path))
	}
	return file{name: name, contentType: a.contentType, content: content}, nil
}

// decodeBase64 reads either alphabet, with and without padding and line breaks.
func decodeBase64(text string) ([]byte, error) {
	text = strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "", " ", "").Replace(text)
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
}

func mediaType(text string) bool {
	kind, _, err := mime.ParseMediaType(text)
	return err == nil && strings.Contains(kind, "/") && !control(text)
}

// mime is the e-mail as the server gets it.
func (m *message) mime() *gomail.Msg {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(m.from)
	msg.ToMailAddress(m.to...)
	msg.CcMailAddress(m.cc...)
	msg.ReplyToMailAddress(m.replyTo...)
	msg.Subject(m.subject)
	msg.SetMessageIDWithValue(m.id)
	msg.SetDateWithValue(m.date)
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	switch {
	case m.hasText && m.hasHTML:
		msg.SetBodyString(gomail.TypeTextPlain, m.text)
		msg.AddAlternativeString(gomail.TypeTextHTML, m.html)
	case m.hasHTML:
		msg.SetBodyString(gomail.TypeTextHTML, m.html)
	default:
		msg.SetBodyString(gomail.TypeTextPlain, m.text)
	}
	for _, f := range m.files {
		msg.AttachReadSeeker(f.name, io.ReadSeeker(bytes.NewReader(f.content)), gomail.WithFileContentType(gomail.ContentType(f.contentType)))
	}
	return msg
}
