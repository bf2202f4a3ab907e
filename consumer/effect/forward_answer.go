package effect

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/consumer"
)

// maxRetryAfter bounds how long a target may put a try off.
const maxRetryAfter = time.Hour

// judge is the one place where an answer becomes an outcome.
func (f *Forwarder) judge(resp *http.Response) error {
	status := resp.StatusCode
	limit := int64(maxDrain)
	if f.success != nil && status/100 == 2 {
		limit = maxAnswer
	}
	body, readErr := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case status/100 == 2:
		return f.accepted(resp, body, readErr)
	case status/100 == 3:
		return consumer.Permanent(fmt.Errorf("answered %d, a redirect%s: redirects are not followed, set url to the address that takes the event", status, toHost(resp)))
	}
	err := fmt.Errorf("answered %d%s", status, f.excerpt(body))
	switch {
	case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests || status/100 == 5:
		if status/100 == 5 {
			err = unwell{err}
		}
		return consumer.RetryAfter(err, retryAfter(resp.Header.Get("Retry-After"), f.Now()))
	case status/100 == 4:
		return consumer.Permanent(err)
	}
	return unwell{err}
}

// accepted looks at a 2xx answer: it is the outcome, unless "success" is to
// find it in what the answer says.
func (f *Forwarder) accepted(resp *http.Response, body []byte, readErr error) error {
	if f.success == nil {
		return nil
	}
	switch {
	case readErr != nil:
		return consumer.Unknown(unwell{fmt.Errorf("answered %d, and the answer broke off before success could be found in it: %w", resp.StatusCode, bare(readErr))})
	case len(body) > maxAnswer:
		return consumer.Unknown(fmt.Errorf("answered %d with more than 1MiB, too much to find success in", resp.StatusCode))
	}
	ok, err := truth(f.success, answerScope(resp.StatusCode, resp.Header, body))
	if err != nil {
		return consumer.Unknown(fmt.Errorf("answered %d, and success cannot be told: %w%s", resp.StatusCode, err, f.excerpt(body)))
	}
	if !ok {
		return consumer.RetryAfter(fmt.Errorf("answered %d, but success is false%s", resp.StatusCode, f.excerpt(body)),
			retryAfter(resp.Header.Get("Retry-After"), f.Now()))
	}
	return nil
}

// toHost names where a redirect leads, without its path.
func toHost(resp *http.Response) string {
	if to, err := resp.Location(); err == nil && to.Host != "" {
		return " to " + to.Scheme + "://" + to.Host
	}
	return ""
}

// excerpt is the beginning of an answer for the error, where a target says why.
// What it repeats of our secrets is left out.
func (f *Forwarder) excerpt(body []byte) string {
	const most = 200
	text := strings.Join(strings.Fields(shorten(body[:min(len(body), 4*most)], 4*most)), " ")
	for _, secret := range f.secrets() {
		text = strings.ReplaceAll(text, secret, "***")
	}
	text = strings.Map(func(r rune) rune {
		if control(string(r)) {
			return -1
		}
		return r
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	if text == "" {
		return ""
	}
	return ": " + text
}

// secrets are the texts that must not show.
func (f *Forwarder) secrets() []string {
	var all []string
	for _, s := range f.Secrets {
		all = append(all, s, strings.TrimPrefix(s, "whsec_"))
	}
	if f.url != nil && f.url.User != nil {
		if password, ok := f.url.User.Password(); ok && password != "" {
			req := &http.Request{Header: http.Header{}}
			req.SetBasicAuth(f.url.User.Username(), password)
			all = append(all, strings.TrimPrefix(req.Header.Get("Authorization"), "Basic "), password)
		}
	}
	return nonEmpty(all)
}

func nonEmpty(texts []string) []string {
	var out []string
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}

// retryAfter reads the header in both of its forms, seconds and a date. What is
// neither, or past, is 0.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// unwell marks a failure that says something about the target rather than
// about the event: enough of them open the circuit breaker.
type unwell struct{ error }

func (u unwell) Unwrap() error { return u.error }

// notTried marks a failure that says nothing about the target, and behind
// which nothing has happened there.
type notTried struct{ error }

func (n notTried) Unwrap() error { return n.error }

func isUnwell(err error) bool {
	var u unwell
	return errors.As(err, &u)
}

func isNotTried(err error) bool {
	var n notTried
	return errors.As(err, &n)
}
