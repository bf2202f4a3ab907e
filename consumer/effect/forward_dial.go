package effect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hookonce/hookonce/consumer"
)

// newClient is the HTTP client of one target. It goes there and nowhere else:
// no proxy of the environment, no redirects. One protocol version is enough for
// POSTs, and the one whose retries we know.
func newClient(control func(network, address string, c syscall.RawConn) error, roots *x509.CertPool) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second, Control: control}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			TLSHandshakeTimeout: 10 * time.Second,
			Protocols:           &protocols,
			MaxIdleConnsPerHost: 64,
			// Shorter than any server waits before it closes an idle connection: a
			// request that meets the closing would have an unknown outcome.
			IdleConnTimeout:        3 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// special are the networks that lead no further than this machine, its
// neighbours or its host, beside those that netip knows.
var special = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4",
	"168.63.129.16/32", // a cloud's own services, at a public address
	"64:ff9b:1::/48", "100::/64", "fec0::/10",
)

// embedding are the IPv6 networks whose addresses stand for an IPv4 address,
// and the byte where that begins.
var embedding = map[netip.Prefix]int{
	netip.MustParsePrefix("64:ff9b::/96"): 12,
	netip.MustParsePrefix("2002::/16"):    2,
	netip.MustParsePrefix("::/96"):        12,
}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, text := range list {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// refused says why no connection to the address is made; "" when it may be.
func refused(addr netip.Addr, allowed []netip.Prefix) string {
	addr = addr.WithZone("").Unmap()
	if public(addr) || slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return ""
	}
	return fmt.Sprintf("%s is no public address: where it is meant, set allow_private: [ %s ]", addr, netip.PrefixFrom(addr, addr.BitLen()))
}

func public(addr netip.Addr) bool {
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return false
	}
	for prefix, from := range embedding {
		if prefix.Contains(addr) {
			b := addr.As16()
			return public(netip.AddrFrom4([4]byte(b[from : from+4])))
		}
	}
	return true
}

var errRefusedAddress = errors.New("refused")

// guard looks at the address of every connection before it is made, behind the
// resolution of names: what a name meant a moment ago does not count.
func guard(allowed []netip.Prefix) func(network, address string, c syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %q is no address", errRefusedAddress, address)
		}
		if why := refused(ap.Addr(), allowed); why != "" {
			return fmt.Errorf("%w: %s", errRefusedAddress, why)
		}
		return nil
	}
}

// wire watches how far a request has come.
type wire struct{ begun atomic.Bool }

func (w *wire) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { w.begun.Store(true) },
	})
}

// failure names what went wrong with a request that got no answer, and whether
// the target may have acted on it: it may as soon as a part was written.
func (w *wire) failure(ctx context.Context, err error) error {
	out := error(unwell{fmt.Errorf("%s: %w", class(err), bare(err))})
	if errors.Is(ctx.Err(), context.Canceled) {
		out = notTried{fmt.Errorf("broken off: %w", context.Canceled)}
	}
	if w.begun.Load() {
		return consumer.Unknown(out)
	}
	return consumer.NotBegun(out)
}

// class sorts failures by what has to be repaired.
func class(err error) string {
	var (
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		timeout net.Error
	)
	switch {
	case errors.As(err, &dns):
		return "dns"
	case errors.As(err, &cert), errors.As(err, &record), errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
		return "tls"
	case errors.Is(err, errRefusedAddress):
		return "address"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "reset"
	}
	return "failed"
}

// bare is an error without the URL, whose path and query may hold a secret.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
