package redis

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// errURL does not quote the URL: it may hold a password.
var errURL = errors.New("store.redis is not a Redis URL: want redis://[user:password@]host[:port][/database], " +
	"redis-sentinel://[user:password@]host[:port],…/master[/database] or redis-cluster://[user:password@]host[:port],…, " +
	"each with rediss for TLS")

// address is what a URL says.
type address struct {
	kind    string // "", "sentinel" or "cluster"
	hosts   []string
	master  string // of the sentinels
	options *redis.Options

	sentinelUser, sentinelPassword string
}

// parseURL reads a Redis URL. Go's url.Parse takes one host, so the others are
// cut out first.
func parseURL(raw string) (*address, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	base, kind, _ := strings.Cut(scheme, "-")
	if !ok || base != "redis" && base != "rediss" || scheme != base && kind != "sentinel" && kind != "cluster" {
		return nil, errURL
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	user, hosts := "", rest[:end]
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		user, hosts = hosts[:at+1], hosts[at+1:]
	}
	a := &address{kind: kind}
	for host := range strings.SplitSeq(hosts, ",") {
		h, err := a.host(host)
		if err != nil {
			return nil, err
		}
		a.hosts = append(a.hosts, h)
	}
	if kind == "" && len(a.hosts) > 1 {
		return nil, errors.New("store.redis names several hosts: write redis-sentinel:// or redis-cluster:// for them")
	}
	u, err := url.Parse(base + "://" + user + a.hosts[0] + rest[end:])
	if err != nil {
		return nil, errURL
	}
	return a, a.read(u)
}

// host is a checked host with its port.
func (a *address) host(s string) (string, error) {
	u, err := url.Parse("redis://" + s)
	if err != nil || u.Hostname() == "" || u.Path != "" {
		return "", errURL
	}
	port := u.Port()
	if port == "" {
		port = "6379"
		if a.kind == "sentinel" {
			port = "26379"
		}
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

// read takes the path and the parameters.
func (a *address) read(u *url.URL) error {
	switch path := strings.Trim(u.Path, "/"); a.kind {
	case "sentinel":
		master, db, _ := strings.Cut(path, "/")
		if master == "" {
			return errors.New("store.redis: a redis-sentinel:// URL ends in the name of the master: redis-sentinel://host:26379/mymaster")
		}
		a.master, u.Path = master, "/"+db
	case "cluster":
		if path != "" && path != "0" {
			return errors.New("store.redis: a cluster has database 0 only: leave the path out")
		}
		u.Path = ""
	}
	q := u.Query()
	take := func(name string) string {
		v := q.Get(name)
		q.Del(name)
		return v
	}
	ca, cert, key := take("tls_ca"), take("tls_cert"), take("tls_key")
	if a.kind == "sentinel" {
		a.sentinelUser, a.sentinelPassword = take("sentinel_user"), take("sentinel_password")
	}
	u.RawQuery = q.Encode()
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return errURL
	}
	a.options = o
	if o.TLSConfig == nil && ca+cert+key != "" {
		return errors.New("store.redis: tls_ca, tls_cert and tls_key need rediss://")
	}
	if o.TLSConfig != nil && a.kind != "" {
		o.TLSConfig.ServerName = "" // each node shows its own certificate
	}
	tune(o)
	return trust(o.TLSConfig, ca, cert, key)
}

// tune makes a client that repeats nothing and ends within the caller's budget.
func tune(o *redis.Options) {
	// A repeated command whose first answer was lost would turn a first
	// delivery into a duplicate of itself, if it were not for the token; and the
	// caller has a budget.
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.DialTimeout = 2 * time.Second
	o.ReadTimeout, o.WriteTimeout = time.Second, time.Second
	o.PoolTimeout = time.Second
	o.PoolSize = 16
	// Commands that servers before 7.2, and Valkey, answer with errors.
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// trust adds a private authority, and a certificate for servers that want one
// of their clients (Redis does unless tls-auth-clients is no).
func trust(c *tls.Config, ca, cert, key string) error {
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return fmt.Errorf("store.redis: tls_ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("store.redis: tls_ca: %s holds no certificate", ca)
		}
	}
	if cert == "" && key == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("store.redis: tls_cert and tls_key: %w", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return nil
}

// connect makes the clients; nothing is dialled yet. A WAIT may take wait.
func (a *address) connect(wait time.Duration) nodes {
	o := a.options
	o.ReadTimeout += wait
	switch a.kind {
	case "cluster":
		return newCluster(a.hosts, o, -1) // see send
	case "sentinel":
		return oneNode{redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName:            a.master,
			SentinelAddrs:         a.hosts,
			SentinelUsername:      a.sentinelUser,
			SentinelPassword:      a.sentinelPassword,
			Username:              o.Username,
			Password:              o.Password,
			DB:                    o.DB,
			TLSConfig:             o.TLSConfig,
			MaxRetries:            o.MaxRetries,
			DialTimeout:           o.DialTimeout,
			DialerRetries:         o.DialerRetries,
			ReadTimeout:           o.ReadTimeout,
			WriteTimeout:          o.WriteTimeout,
			ContextTimeoutEnabled: o.ContextTimeoutEnabled,
			PoolTimeout:           o.PoolTimeout,
			PoolSize:              o.PoolSize,
			DisableIdentity:       o.DisableIdentity,
		})}
	}
	return oneNode{redis.NewClient(o)}
}

// universal is a client for commands that may be repeated.
func (a *address) universal() redis.UniversalClient {
	if a.kind == "cluster" {
		return newCluster(a.hosts, a.options, 3).ClusterClient
	}
	return a.connect(0).(oneNode).Client
}
