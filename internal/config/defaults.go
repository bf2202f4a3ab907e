package config

import (
	"path/filepath"
	"time"

	"github.com/hookonce/hookonce/receiver/provider"
)

const day = 24 * time.Hour

// fill gives a value that the configuration leaves out its default. A zero
// that was written down stays, for the checks to refuse.
func fill[T comparable](l *loader, dst *T, path string, value T) {
	var zero T
	if *dst == zero && !l.set[path] {
		*dst = value
	}
}

// fillDefaults completes the configuration and, where neither sources nor
// consumers are configured, puts the demo in place.
func (l *loader) fillDefaults(c *Config) {
	if len(c.Sources) == 0 && len(c.Consumers) == 0 {
		c.FirstRun = true
		addDemo(c)
	}
	fill(l, &c.DataDir, "data_dir", "./hookonce-data")
	fill(l, &c.StartupTimeout, "startup_timeout", 30*time.Second)
	fill(l, &c.ShutdownTimeout, "shutdown_timeout", 25*time.Second)
	fill(l, &c.Receiver.Listen, "receiver.listen", "127.0.0.1:8080")
	fill(l, &c.Receiver.AdminListen, "receiver.admin_listen", "127.0.0.1:8082")
	fill(l, &c.Receiver.MaxBody, "receiver.max_body", largestBody(c.Sources))
	fill(l, &c.Admin.Listen, "admin.listen", "127.0.0.1:8081")
	l.fillServers(c)
	for name, a := range c.Store.Adopt {
		if a.Kind == Postgres {
			fill(l, &a.Table, "store.adopt."+name+".table", "webhook_event_locks")
		}
		if s := c.Sources[name]; s != nil {
			// What an older guard knows, only the store can tell.
			fill(l, &s.OnStoreDown, "sources."+name+".on_store_down", "reject")
		}
	}
	for name, s := range c.Sources {
		l.fillSource(s, name, c.Store.ClaimTTL)
	}
	for name, g := range c.Consumers {
		l.fillGroup(g, name)
	}
}

// largestBody is 1 MiB, or what the providers of the sources are known to send.
func largestBody(sources map[string]*Source) Size {
	largest := int64(1 << 20)
	for _, s := range sources {
		preset, _ := provider.Lookup(s.Provider)
		largest = max(largest, preset.MaxBody)
	}
	return Size(largest)
}

func (l *loader) fillServers(c *Config) {
	fill(l, &c.Store.Kind, "store.kind", SQLite)
	fill(l, &c.Store.Schema, "store.schema", "hookonce")
	fill(l, &c.Store.Lease, "store.lease", 10*time.Second)
	fill(l, &c.Store.ClaimTTL, "store.claim_ttl", 45*day)
	fill(l, &c.Store.MaxOutbox, "store.max_outbox", 1_000_000)
	outbox := Size(2 << 30)
	if c.Store.Kind == Redis {
		outbox = 512 << 20 // it lives in memory there
	}
	fill(l, &c.Store.MaxOutboxBytes, "store.max_outbox_bytes", outbox)

	fill(l, &c.Broker.Kind, "broker.kind", Embedded)
	fill(l, &c.Broker.Topology, "broker.topology", "declare")

	own := "inbox.db"
	if c.FirstRun {
		own = "demo.db"
	}
	fill(l, &c.Inbox.Kind, "inbox.kind", SQLite)
	fill(l, &c.Inbox.SQLite, "inbox.sqlite", filepath.Join(c.DataDir, own))
	fill(l, &c.Inbox.Schema, "inbox.schema", "hookonce")
	fill(l, &c.Inbox.Lease, "inbox.lease", 15*time.Second)
	fill(l, &c.Inbox.TTL, "inbox.ttl", 45*day)

	audit := None
	switch {
	case c.Inbox.Kind == Postgres:
		audit = Postgres
	case l.role == Serve:
		audit = SQLite
	}
	fill(l, &c.Audit.Kind, "audit.kind", audit)
	fill(l, &c.Audit.Retention, "audit.retention", 90*day)
}

func (l *loader) fillSource(s *Source, name string, claimTTL time.Duration) {
	at := place{}.field("sources").entry(name).text
	s.Name, s.Line = name, l.at[at].Line
	fill(l, &s.Provider, at+".provider", "generic")
	preset, _ := provider.Lookup(s.Provider)
	if s.Provider == "generic" {
		fill(l, &s.Verify.Scheme, at+".verify.scheme", provider.SchemeHMACSHA256)
		if s.Key == nil {
			s.Key = preset.Keys
		}
	}
	if s.Verify.Scheme == provider.SchemeHMACSHA256 {
		fill(l, &s.Verify.Header, at+".verify.header", provider.DefaultSignatureHeader)
		fill(l, &s.Verify.Encoding, at+".verify.encoding", "hex")
	}
	tolerance := preset.Tolerance
	if tolerance == 0 {
		tolerance = provider.DefaultTolerance
	}
	fill(l, &s.Verify.Tolerance, at+".verify.tolerance", tolerance)
	if preset.BodyWindow != 0 {
		fill(l, &s.Body.Window, at+".body.window", preset.BodyWindow)
	}
	fill(l, &s.Body.Window, at+".body.window", 10*time.Minute)
	fill(l, &s.Dedup, at+".dedup", word(preset.NoDedup, None, "key"))
	fill(l, &s.Entity, at+".entity", preset.Entity)
	fill(l, &s.Version, at+".version", preset.Version)
	if s.Respond == (Respond{}) && !l.set[at+".respond.body"] {
		s.Respond.Body = preset.Body
	}
	if preset.Status != 0 {
		fill(l, &s.Respond.Status, at+".respond.status", preset.Status)
	}
	fill(l, &s.Respond.Status, at+".respond.status", 200)
	fill(l, &s.OnInvalid, at+".on_invalid", "reject")
	fill(l, &s.MaxItems, at+".max_items", 10000)
	fill(l, &s.Path, at+".path", "/hooks/"+name)
	if preset.Retention != 0 {
		fill(l, &s.Retention, at+".retention", preset.Retention)
	}
	fill(l, &s.Retention, at+".retention", claimTTL)
	fill(l, &s.OnNoKey, at+".on_no_key", word(preset.ParkNoKey, "park", "reject"))
	fill(l, &s.Unmatched, at+".unmatched", "keep")
	fill(l, &s.OnStoreDown, at+".on_store_down", "publish")
	fill(l, &s.OnChangedBody, at+".on_changed_body", "accept")
	fill(l, &s.Ack, at+".ack", "claim")
}

// word chooses between two.
func word(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

func (l *loader) fillGroup(g *Group, name string) {
	at := place{}.field("consumers").entry(name)
	g.Name, g.Line = name, l.at[at.text].Line
	fill(l, &g.Concurrency, at.text+".concurrency", 16)
	fill(l, &g.Prefetch, at.text+".prefetch", 64)
	fill(l, &g.Retry.MaxAttempts, at.text+".retry.max_attempts", 12)
	fill(l, &g.Retry.First, at.text+".retry.first", time.Second)
	fill(l, &g.Retry.Max, at.text+".retry.max", max(10*time.Minute, g.Retry.First))
	fill(l, &g.Retry.MaxCrashes, at.text+".retry.max_crashes", 5)
	for i, e := range g.Effects {
		l.fillEffect(e, at.field("effects").index(i).text, g.Concurrency)
	}
}

// addDemo is the first run: one source that anything may post to, and one
// group that writes a ticket for each order.
func addDemo(c *Config) {
	c.Sources = map[string]*Source{"demo": {
		Provider: "generic",
		Verify:   Verify{Scheme: None},
		Key:      []string{"header:Idempotency-Key", "json:order_id"},
		Type:     TypeRule{From: "json:type"},
	}}
	c.Consumers = map[string]*Group{"demo": {
		Match: []string{"demo.#"},
		Effects: []*Effect{{
			Name: "issue-ticket",
			SQL:  StringList{"insert into tickets(order_id,email,key,at) values(:order_id,:email,:key,:at)"},
			Params: map[string]string{
				"order_id": "json:order_id",
				"email":    "json:email",
				"key":      "key",
				"at":       "received_at",
			},
		}},
	}}
}
