package config

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// maxBody is the largest message that RabbitMQ takes from 4.0 on.
const maxBody = 16 << 20

// Loopback reports whether a listen address can be reached from this machine
// alone. An empty host is every interface, and a name other than localhost may
// be any: neither is loopback.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func (k *checker) receiver() {
	r := k.c.Receiver
	if r.MaxBody <= 0 || r.MaxBody > maxBody {
		k.bad("receiver.max_body", "must be more than 0 and at most 16MiB: the broker takes no larger message")
	}
	if u, err := url.Parse(r.PublicURL); r.PublicURL != "" &&
		(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		k.bad("receiver.public_url", "is not the start of a public address: write https://hooks.example.com, without user, ? and #")
	}
	for i, p := range r.TrustedProxies {
		_, errAddr := netip.ParseAddr(p)
		_, errNet := netip.ParsePrefix(p)
		if errAddr != nil && errNet != nil {
			k.bad(indexed("receiver.trusted_proxies", i), "%s is no address: write 10.0.0.7 or 10.0.0.0/8", shown(p, false))
		}
	}
	if (r.TLS.Cert == "") != (r.TLS.Key == "") && k.role.receives() {
		k.bad("receiver.tls", "needs both cert and key: name the other file, or neither")
	}
}

// listeners checks those that the role opens, and no others.
func (k *checker) listeners() {
	const hooks, admin, small = "receiver.listen", "admin.listen", "receiver.admin_listen"
	r, a := k.c.Receiver, k.c.Admin
	if k.role.receives() && k.listen(hooks, r.Listen) && k.c.FirstRun && !Loopback(r.Listen) {
		k.bad(hooks, "%s would offer the demo source, which anyone may post to, beyond this machine: "+
			"configure sources, or listen on 127.0.0.1", r.Listen)
	}
	if k.role.consumes() && k.listen(admin, a.Listen) && !Loopback(a.Listen) && a.Token == "" {
		k.bad("admin.listen", "%s can be reached from other machines and has no token: set admin.token, or listen on 127.0.0.1", a.Listen)
	}
	switch {
	case k.role == ReceiverRole && k.listen(small, r.AdminListen):
		k.apart(small, r.AdminListen, hooks, r.Listen)
	case k.role == Serve:
		k.apart(admin, a.Listen, hooks, r.Listen)
	}
}

// listen wants host:port.
func (k *checker) listen(path, addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || strings.ContainsAny(host, " /@\t\r\n") {
		k.bad(path, "%s is not an address to listen on: write 127.0.0.1:8080, [::1]:8080 or :8080", shown(addr, false))
		return false
	}
	return true
}

// apart wants two listeners that can be open at the same time.
func (k *checker) apart(path, addr, otherPath, other string) {
	host1, port1, err1 := net.SplitHostPort(addr)
	host2, port2, err2 := net.SplitHostPort(other)
	if err1 != nil || err2 != nil || port1 != port2 || port1 == "0" {
		return
	}
	if host1 == host2 || everywhere(host1) || everywhere(host2) {
		k.bad(path, "%s is taken by %s (%s): choose another port", addr, otherPath, other)
	}
}

func everywhere(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

func indexed(path string, i int) string { return place{text: path}.index(i).text }
