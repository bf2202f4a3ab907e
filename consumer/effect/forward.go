package effect

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr/vm"

	"github.com/hookonce/hookonce/consumer"
)

// Forward is the effect "forward": the event's body, posted to a URL.
type Forward struct {
	// URL is the target, http:// or https://; it may hold user:password.
	URL string
	// Secrets sign the request as in Standard Webhooks, the first one first;
	// "whsec_" is followed by base64. None: no signature.
	Secrets []string
	// Timeout bounds one request, waiting for Rate not counted. 10s.
	Timeout time.Duration
	// Rate bounds how often this process posts.
	Rate Rate
	// AllowPrivate are the networks ("10.0.0.0/8") and addresses that the
	// target may have although they are no public ones.
	AllowPrivate []string
	// Success is an expression over the answer's json, headers and status that a
	// 2xx answer must satisfy too.
	Success string
	// Headers are the original headers to pass on.
	Headers []string
	// RootCAs vouch for the target; nil: the system's.
	RootCAs *x509.CertPool
	// Now is the clock; time.Now.
	Now func() time.Time
}

const (
	defaultForwardTimeout = 10 * time.Second
	// maxAnswer bounds what is read of an answer that "success" looks at.
	maxAnswer = 1 << 20
	// maxDrain bounds what is read of any other.
	maxDrain = 16 << 10
)

// Forwarder is a compiled [Forward]. It is safe for use by many goroutines.
type Forwarder struct {
	Forward
	url      *url.URL
	origin   string // scheme and host: all of the URL that errors show
	keys     []signingKey
	throttle throttle
	success  *vm.Program
	client   *http.Client
	breaker  *breaker
}

// Compile checks the effect; all problems are in the error, see [Problems].
func (f Forward) Compile() (*Forwarder, error) {
	var p problems
	c := &Forwarder{Forward: f, throttle: newThrottle(f.Rate), breaker: newBreaker()}
	if c.Timeout <= 0 {
		c.Timeout = defaultForwardTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	allowed := p.networks("allow_private", f.AllowPrivate)
	c.target(&p, allowed)
	for i, secret := range f.Secrets {
		key, err := parseSigningKey(secret)
		if err != nil {
			p.bad(at("secret", i, len(f.Secrets)), "%v", err)
		}
		c.keys = append(c.keys, key)
	}
	if f.Success != "" {
		var err error
		if c.success, err = compileExpr(f.Success, answer{}); err != nil {
			p.bad("success", "%v", err)
		}
	}
	for i, name := range f.Headers {
		if why := mayPass(name); why != "" {
			p.bad(at("headers", i, 2), "%s", why)
		}
	}
	c.client = newClient(guard(allowed), f.RootCAs)
	return c, p.err()
}

// at names a setting that may be a list.
func at(setting string, i, n int) string {
	if n == 1 {
		return setting
	}
	return fmt.Sprintf("%s[%d]", setting, i)
}

// networks reads a list of networks and addresses.
func (p *problems) networks(setting string, list []string) []netip.Prefix {
	var out []netip.Prefix
	for i, text := range list {
		prefix, err := netip.ParsePrefix(text)
		if addr, aerr := netip.ParseAddr(text); aerr == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			p.bad(at(setting, i, 2), "%q is no network: write one like 10.0.0.0/8, or an address", text)
			continue
		}
		out = append(out, prefix.Masked())
	}
	return out
}

// target checks the URL. An address that stands in it is looked at now, a name
// at each connection.
func (f *Forwarder) target(p *problems, allowed []netip.Prefix) {
	u, err := url.Parse(f.URL)
	switch {
	case f.URL == "":
		p.bad("url", "is needed: where to post the event")
		return
	case err != nil || u.Scheme != "http" && u.Scheme != "https":
		p.bad("url", "is not a URL that begins with https:// or http://: check it for characters that need percent-escapes, too")
		return
	case u.Hostname() == "":
		p.bad("url", "names no host: write %s://host/path", u.Scheme)
		return
	case u.Fragment != "":
		p.bad("url", "has a # part, which no server is sent: leave it out")
	}
	f.url, f.origin = u, u.Scheme+"://"+u.Host
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		if why := refused(addr, allowed); why != "" {
			p.bad("url", "%s", why)
		}
	}
}

// Do posts the event once.
func (f *Forwarder) Do(ctx context.Context, t consumer.Try) error {
	err := f.breaker.run(func() error {
		if err := f.throttle.wait(ctx, f.Timeout); err != nil {
			return notTried{err}
		}
		return f.post(ctx, t)
	})
	if err != nil {
		return fmt.Errorf("forward to %s: %w", f.origin, err)
	}
	return nil
}

// Close gives idle connections up.
func (f *Forwarder) Close() { f.client.CloseIdleConnections() }

func (f *Forwarder) post(ctx context.Context, t consumer.Try) error {
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	var sent wire
	req, err := f.request(sent.trace(ctx), t)
	if err != nil {
		return notTried{consumer.Permanent(err)}
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return sent.failure(ctx, err)
	}
	defer resp.Body.Close()
	return f.judge(resp)
}

// Preview writes the request that Do would send, without secrets.
func (f *Forwarder) Preview(w io.Writer, t consumer.Try) error {
	req, err := f.request(context.Background(), t)
	if err != nil {
		return err
	}
	shown := *f.url
	if shown.User != nil {
		shown.User = nil
		fmt.Fprintln(w, "with the user and password of the URL")
	}
	fmt.Fprintf(w, "POST %s\n", shown.String())
	names := make([]string, 0, len(req.Header))
	for name := range req.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value := req.Header.Get(name)
		if name == http.CanonicalHeaderKey(signatureHeader) {
			value = "(signed with the secret)"
		}
		fmt.Fprintf(w, "%s: %s\n", name, value)
	}
	fmt.Fprintf(w, "\n%s\n", shorten(t.Event.Body, 4096))
	return nil
}

// shorten is a body for the eye.
func shorten(b []byte, most int) string {
	if len(b) > most {
		return strings.ToValidUTF8(string(b[:most]), "\uFFFD") + fmt.Sprintf("… (%d bytes in all)", len(b))
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
