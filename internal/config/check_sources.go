package config

import (
	"maps"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/topic"
	"github.com/hookonce/hookonce/receiver/provider"
)

// providers are the preset names.
func providers() []string {
	var names []string
	for _, p := range provider.All() {
		names = append(names, p.Name)
	}
	return names
}

func (k *checker) source(s *Source, at string) {
	k.name(at, s.Name)
	preset, _ := provider.Lookup(s.Provider)
	if k.oneOf(at+".provider", s.Provider, providers()...) {
		k.verify(s, preset, at)
	}
	if limit := int64(k.c.Receiver.MaxBody); k.role.receives() && limit < preset.MaxBody {
		k.warn("receiver.max_body", "%s sends up to %s: set at least that, or its large deliveries are refused for good", preset.Title, Size(preset.MaxBody))
	}
	k.keys(s, preset, at)
	k.typeRule(s, at)
	k.respond(s, at)
	k.rules(s, at)
	k.positive(at+".retention", s.Retention)
	for i, h := range s.KeepHeaders {
		if !headerName(h) {
			k.bad(indexed(at+".keep_headers", i), "%s is not a header's name", shown(h, false))
		}
	}
	k.oneOf(at+".on_no_key", s.OnNoKey, "reject", "park")
	k.oneOf(at+".dedup", s.Dedup, "key", None)
	k.oneOf(at+".unmatched", s.Unmatched, "keep", "drop")
	k.oneOf(at+".on_store_down", s.OnStoreDown, "publish", "reject")
	if k.oneOf(at+".on_changed_body", s.OnChangedBody, "accept", "reject") && s.OnChangedBody == "reject" && preset.FreshBody {
		k.bad(at+".on_changed_body", "provider %s makes the body anew for each attempt, so that every repeat would be refused: leave it out", preset.Name)
	}
	k.oneOf(at+".ack", s.Ack, "claim", "confirm")
}

// rules checks what lets deliveries in.
func (k *checker) rules(s *Source, at string) {
	for i, pattern := range s.Accept {
		k.pattern(indexed(at+".accept", i), pattern)
	}
	for i, pattern := range s.Ignore {
		k.pattern(indexed(at+".ignore", i), pattern)
	}
	for i, text := range s.AllowIPs {
		if !isAddress(text) {
			k.bad(indexed(at+".allow_ips", i), "%s is no address: write 10.0.0.7 or 10.0.0.0/8", shown(text, false))
		}
	}
	k.oneOf(at+".on_invalid", s.OnInvalid, "reject", "park")
	k.atLeast(at+".max_items", int64(s.MaxItems), 1)
	if s.Schema == "" || !k.role.receives() {
		return
	}
	text, err := readBounded(k.inDir(s.Schema))
	if err != nil {
		k.bad(at+".schema", "%s cannot be read (%s): name a JSON Schema's file, relative to the configuration file", shown(s.Schema, false), reason(err))
		return
	}
	s.SchemaText = text
}

// verify checks how deliveries prove themselves, and that there is a secret to
// prove it with where deliveries arrive.
func (k *checker) verify(s *Source, preset provider.Preset, at string) {
	v := s.Verify
	own := v.Scheme == "" || slices.Contains(preset.Schemes, v.Scheme)
	if !own && !k.oneOf(at+".verify.scheme", v.Scheme, slices.Concat(provider.GenericSchemes, preset.Schemes)...) {
		return
	}
	if v.Scheme == None {
		k.unsigned(s, at)
		return
	}
	if v.Header != "" && !headerName(v.Header) {
		k.bad(at+".verify.header", "%s is not a header's name: write one like X-Signature", shown(v.Header, false))
	}
	if v.Encoding != "" {
		k.oneOf(at+".verify.encoding", v.Encoding, "hex", "base64", "base64url")
	}
	if v.Over != "" {
		k.oneOf(at+".verify.over", v.Over, "decoded", "wire")
	}
	k.positive(at+".verify.tolerance", v.Tolerance)
	if !own && v.Timestamp == "" && k.set[at+".verify.tolerance"] {
		k.warn(at+".verify.tolerance", "has no effect: %s signs no time without verify.timestamp", v.Scheme)
	}
	if k.hasProblem(at+".verify.header") || k.hasProblem(at+".verify.over") || k.hasProblem(at+".verify.encoding") || k.hasProblem(at+".verify.tolerance") ||
		k.failed(at+".verify") || k.failed(at+".secrets") || !k.role.receives() {
		return
	}
	if len(s.Secrets)+len(v.Keys) == 0 && !(own && preset.NoSecrets) {
		k.bad(at+".secrets", "no secret to verify deliveries with: set secrets: [ \"${NAME}\" ]%s", k.orUnsigned(s))
		return
	}
	if _, err := preset.NewVerifier(s.Settings()); err != nil {
		k.bad(at+".verify", "%s", strings.TrimPrefix(err.Error(), provider.ErrConfig.Error()+": "))
	}
	for i, secret := range s.Secrets {
		if end := secret.Expires; !end.IsZero() && !time.Now().Before(end.Time) {
			k.warn(indexed(at+".secrets", i), "has expired and verifies nothing any more: remove it")
		}
	}
}

// Settings are how the source's deliveries are verified.
func (s *Source) Settings() provider.Settings {
	v := s.Verify
	set := provider.Settings{
		Scheme: v.Scheme, Header: v.Header, Encoding: v.Encoding, Prefix: v.Prefix, Signed: v.Signed, Timestamp: v.Timestamp,
		SecretEncoding: v.SecretEncoding, Tolerance: v.Tolerance, Keys: v.Keys, KeysURL: v.KeysURL, ID: v.ID, Token: v.Token.Reveal(), Over: v.Over,
	}
	for _, secret := range s.Secrets {
		if secret.Expires.IsZero() {
			set.Secrets = append(set.Secrets, secret.Reveal())
			continue
		}
		set.Expiring = append(set.Expiring, provider.Secret{Value: secret.Reveal(), Expires: secret.Expires.Time})
	}
	return set
}

func (k *checker) orUnsigned(s *Source) string {
	if s.Provider == "generic" {
		return ", or verify: none if the sender signs nothing"
	}
	return ""
}

func (k *checker) unsigned(s *Source, at string) {
	v := s.Verify
	if v.Header != "" || v.Encoding != "" || v.Prefix != "" {
		k.bad(at+".verify", "scheme none has no header, encoding or prefix: remove them, or set scheme: %s", provider.SchemeHMACSHA256)
	}
	switch {
	case len(s.Secrets) > 0:
		k.bad(at+".verify", "none never uses the secrets: remove them, or set scheme: %s", provider.SchemeHMACSHA256)
	case !k.c.FirstRun:
		k.warn(at+".verify", "none: anyone who knows the URL can post events")
	}
}

func (k *checker) keys(s *Source, preset provider.Preset, at string) {
	for i, recipe := range s.Key {
		if why := checkKey(recipe); why != "" {
			k.bad(indexed(at+".key", i), "%s", why)
		} else if why := volatileKey(recipe, s, preset); why != "" {
			k.bad(indexed(at+".key", i), "%s", why)
		} else if recipe == "body:stringify" {
			k.bad(indexed(at+".key", i), "is for previous_keys: equal bodies can be different events, so this hash only finds what an older guard knows. Name the event's id")
		} else if slices.Contains(s.Key[:i], recipe) {
			k.bad(indexed(at+".key", i), "%s stands here twice: remove one", shown(recipe, false))
		}
	}
	if len(s.Key) == 0 && s.Provider == "generic" {
		k.bad(at+".key", "an empty list finds no key: name recipes, like [ \"header:Idempotency-Key\", \"json:id\" ]")
	}
	for i, recipe := range s.PreviousKeys {
		if why := checkKey(recipe); why != "" {
			k.bad(indexed(at+".previous_keys", i), "%s", why)
		} else if preset.FreshBody && strings.HasPrefix(recipe, "body") {
			k.bad(indexed(at+".previous_keys", i), "provider %s makes the body anew for each attempt, so that its hash finds nothing: leave it out", preset.Name)
		} else if recipe == "body" {
			k.bad(indexed(at+".previous_keys", i), "a hash of the body is known for its window only: leave it out, and set accept_rekey: true when the window is over")
		}
	}
	usesBody := slices.Contains(s.Key, "body") || len(s.Key) == 0 && slices.Contains(preset.Keys, "body")
	switch {
	case usesBody && (s.Body.Window <= 0 || s.Body.Window > s.Retention):
		k.bad(at+".body.window", "must be more than 0 and at most the source's retention")
	case !usesBody && k.mentions(at+".body"):
		k.warn(at+".body", "has no effect: \"body\" is not among the key recipes")
	}
	if len(s.Body.Ignore) > 0 && !s.Body.Canonical {
		k.bad(at+".body.ignore", "raw bytes have no paths to ignore: set canonical: true too")
	}
	for i, p := range s.Body.Ignore {
		if why := checkPath(p); why != "" {
			k.bad(indexed(at+".body.ignore", i), "%s", why)
		}
	}
}

func (k *checker) typeRule(s *Source, at string) {
	path := at + ".type"
	if k.set[path+".from"] {
		path += ".from"
	}
	switch constant, isConstant := strings.CutPrefix(s.Type.From, "="); {
	case isConstant && constant == "":
		k.bad(path, "\"=\" needs the type behind it, like \"=order.paid\"")
	case isConstant:
	case s.Type.From != "":
		if why := checkValue(s.Type.From); why != "" {
			k.bad(path, "%s", why)
		}
	case len(s.Type.Map) > 0 && s.Provider == "generic":
		k.bad(path, "map needs from: say where the type is, like from: \"json:type\"")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Type.Map)) {
		if s.Type.Map[name] == "" {
			k.bad(at+".type.map."+name, "maps to nothing: name a type")
		}
	}
	for _, f := range []struct{ name, recipe string }{{"entity", s.Entity}, {"version", s.Version}} {
		if f.recipe == "" {
			continue
		}
		if why := checkValue(f.recipe); why != "" {
			k.bad(at+"."+f.name, "%s", why)
		}
	}
}

func (k *checker) respond(s *Source, at string) {
	r := s.Respond
	if r.Status < 200 || r.Status > 299 {
		k.bad(at+".respond.status", "%d is not a success: write 200 to 299, as anything else makes the sender repeat", r.Status)
	}
	if r.Body != "" && (r.Status == http.StatusNoContent || r.Status == http.StatusResetContent) {
		k.bad(at+".respond.body", "an answer with status %d has no body: leave it out, or use status 200", r.Status)
	}
}

// paths wants every source on a path of its own.
func (k *checker) paths() {
	taken := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(k.c.Sources)) {
		path, at := k.c.Sources[name].Path, "sources."+name+".path"
		if !nameRule.MatchString(name) && !k.set[at] {
			continue // the name is the problem
		}
		if !strings.HasPrefix(path, "/") || strings.ContainsFunc(path, oddInPath) ||
			strings.Contains(path, "//") || slices.Contains(strings.Split(path, "/"), "..") {
			k.bad(at, "%s is not a path: write one like /hooks/%s, without : * ? # %% and white space", shown(path, false), name)
			continue
		}
		if other, twice := taken[path]; twice {
			k.bad(at, "%s is the path of source %s too (%s): each needs its own", path, other, k.spot("sources."+other+".path"))
			continue
		}
		taken[path] = name
	}
}

// oddInPath reports characters that a router or a URL reads in its own way.
func oddInPath(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`:*?#%\`, r) }

// pattern wants a topic pattern.
func (k *checker) pattern(path, pattern string) {
	_, err := topic.Parse(pattern)
	switch {
	case err != nil:
		k.bad(path, "%s", err)
	case slices.Contains(strings.Split(pattern, "."), ""):
		k.bad(path, "%s has an empty word: write words parted by single dots, like stripe.charge.* or orders.#", shown(pattern, false))
	}
}

// isAddress tells whether a text is an IP address or a network.
func isAddress(text string) bool {
	_, errAddr := netip.ParseAddr(text)
	_, errNet := netip.ParsePrefix(text)
	return errAddr == nil || errNet == nil
}

// inDir is a file's name relative to the configuration file.
func (l *loader) inDir(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(l.dir, name)
}
