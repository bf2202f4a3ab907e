package app

import (
	"fmt"
	"net"
	"strings"

	"github.com/hookonce/hookonce/internal/config"
)

// adminURL is where the admin API of serve and consumer answers.
func adminURL(cfg *config.Config) string { return "http://" + reachable(cfg.Admin.Listen) }

// hooksURL is the receiver's base URL as this machine reaches it.
func hooksURL(cfg *config.Config) string {
	scheme := "http://"
	if cfg.Receiver.TLS.Cert != "" {
		scheme = "https://"
	}
	return scheme + reachable(cfg.Receiver.Listen)
}

// reachable turns a listening address into one to connect to.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// announce prints where the process listens and, in the first run, what to try.
func (s *system) announce(receives, consumes bool) {
	var b strings.Builder
	if receives {
		for _, name := range sortedKeys(s.cfg.Sources) {
			fmt.Fprintf(&b, "receiver  %s%s\n", hooksURL(s.cfg), s.cfg.Sources[name].Path)
		}
	}
	if consumes {
		fmt.Fprintf(&b, "admin     %s\n", adminURL(s.cfg))
	} else {
		fmt.Fprintf(&b, "admin     http://%s\n", reachable(s.cfg.Receiver.AdminListen))
	}
	if s.cfg.FirstRun && receives {
		fmt.Fprintf(&b, "\ntry it, as often as you like:\n\n"+
			"  curl -i %s/hooks/demo -d '{\"type\":\"order.paid\",\"order_id\":\"A-1\",\"email\":\"ana@example.com\"}'\n\n"+
			"every order becomes one row of the table tickets in %s\n", hooksURL(s.cfg), s.cfg.Inbox.SQLite)
	}
	fmt.Fprint(s.stdout, b.String())
}
