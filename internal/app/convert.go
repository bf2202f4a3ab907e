package app

import (
	"fmt"
	"slices"

	"github.com/hookonce/hookonce/consumer"
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
				SecretEncoding: set.SecretEncoding, Tolerance: set.Tolerance, Keys: set.Keys, KeysURL: set.KeysURL, ID: set.ID, Token: set.Token, Over: set.Over,
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

// routes are the configured consumer groups, by name, as far as it takes to
// send them events: what they do with those is not looked at.
func routes(cfg *config.Config) ([]consumer.Group, error) {
	var out []consumer.Group
	for _, name := range sortedKeys(cfg.Consumers) {
		g := cfg.Consumers[name]
		match, err := patterns(g)
		if err != nil {
			return nil, err
		}
		out = append(out, consumer.Group{
			Name: name, Match: match, Concurrency: g.Concurrency, Prefetch: g.Prefetch,
			Retry: consumer.RetryPolicy(g.Retry),
		})
	}
	return out, nil
}

// groups are the configured consumer groups, by name, ready to run.
func groups(cfg *config.Config) ([]consumer.Group, error) {
	out, err := routes(cfg)
	if err != nil {
		return nil, err
	}
	for i := range out {
		g := &out[i]
		for _, e := range cfg.Consumers[g.Name].Effects {
			s, err := compile(cfg, e)
			if err != nil {
				return nil, fmt.Errorf("consumers.%s: effect %s: %w", g.Name, e.Name, err)
			}
			g.Steps = append(g.Steps, s.Step)
		}
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

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
