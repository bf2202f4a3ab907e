package app

import (
	"fmt"
	"slices"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/consumer/effect"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/topic"
	"github.com/hookonce/hookonce/receiver"
)

// sources are the configured sources as the receiver takes them, by name.
func sources(cfg *config.Config) []receiver.Source {
	var out []receiver.Source
	for _, name := range sortedKeys(cfg.Sources) {
		s := cfg.Sources[name]
		set := s.Settings()
		out = append(out, receiver.Source{
			Name: name, Path: s.Path, Provider: s.Provider, Secrets: set.Secrets, Expiring: set.Expiring, AllowIPs: s.AllowIPs,
			Verify: receiver.Verify{
				Scheme: set.Scheme, Header: set.Header, Encoding: set.Encoding, Prefix: set.Prefix, Signed: set.Signed, Timestamp: set.Timestamp,
				SecretEncoding: set.SecretEncoding, Tolerance: set.Tolerance, Keys: set.Keys, KeysURL: set.KeysURL, ID: set.ID, Token: set.Token,
			},
			Keys: s.Key, PreviousKeys: s.PreviousKeys,
			Body: receiver.BodyKey(s.Body), Dedup: s.Dedup,
			Type:    receiver.TypeRule(s.Type),
			Respond: receiver.Respond(s.Respond),
			Accept:  s.Accept, Ignore: s.Ignore,
			Schema: s.SchemaText, OnInvalid: s.OnInvalid, MaxItems: s.MaxItems,
			Retention:   s.Retention,
			KeepHeaders: s.KeepHeaders,
			OnNoKey:     s.OnNoKey, Unmatched: s.Unmatched, OnStoreDown: s.OnStoreDown,
			OnChangedBody: s.OnChangedBody, Ack: s.Ack,
		})
	}
	return out
}

// groups are the configured consumer groups, by name.
func groups(cfg *config.Config) ([]consumer.Group, error) {
	flavor := effect.SQLite
	if cfg.Inbox.Kind == config.Postgres {
		flavor = effect.Postgres
	}
	var out []consumer.Group
	for _, name := range sortedKeys(cfg.Consumers) {
		g := cfg.Consumers[name]
		match, err := patterns(g)
		if err != nil {
			return nil, err
		}
		group := consumer.Group{
			Name: name, Match: match, Concurrency: g.Concurrency, Prefetch: g.Prefetch,
			Retry: consumer.RetryPolicy(g.Retry),
		}
		for _, e := range g.Effects {
			tx, err := effect.SQL{Statements: e.SQL, Params: e.Params, Flavor: flavor}.Compile()
			if err != nil {
				return nil, fmt.Errorf("consumers.%s: effect %s: %w", name, e.Name, err)
			}
			group.Steps = append(group.Steps, consumer.Step{Name: e.Name, Was: e.Was, Timeout: e.Timeout, Tx: tx})
		}
		out = append(out, group)
	}
	return out, nil
}

func patterns(g *config.Group) ([]topic.Pattern, error) {
	var out []topic.Pattern
	for _, text := range g.Match {
		p, err := topic.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("consumers.%s.match: %w", g.Name, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// router says which groups want an event; the embedded queue asks it where
// RabbitMQ has bindings.
func router(gs []consumer.Group) func(hookonce.Event) []string {
	return func(e hookonce.Event) []string {
		name := e.Topic()
		var names []string
		for _, g := range gs {
			if slices.ContainsFunc(g.Match, func(p topic.Pattern) bool { return p.Match(name) }) {
				names = append(names, g.Name)
			}
		}
		return names
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
