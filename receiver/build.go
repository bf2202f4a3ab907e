package receiver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/recipe"
	"github.com/hookonce/hookonce/internal/topic"
	"github.com/hookonce/hookonce/receiver/provider"
)

const (
	defaultRetention = 45 * 24 * time.Hour
	defaultWindow    = 10 * time.Minute
	maxSourceName    = 64
)

// source is a [Source] ready for use: checked, defaults filled in, recipes parsed.
type source struct {
	name, path string
	preset     provider.Preset
	settings   provider.Settings
	verifier   provider.Verifier
	allowed    addresses // nil: all
	keys       []recipe.Recipe
	keyNames   string // for the answer to a request without a key
	previous   []recipe.Recipe
	hash       bodyHash
	eventType  typeRule
	needsJSON  bool // a body that looks like JSON must be
	readsJSON  bool // JSON is looked for, and may be missing
	needsForm  bool
	accept     []topic.Pattern
	ignore     []topic.Pattern
	schema     *jsonschema.Schema
	guard      provider.Guard
	maxItems   int
	answer     hookonce.Answer
	retention  time.Duration
	headers    headerFilter
	unmatched  string // of the event: "" or "drop"

	guardRecipe recipe.Recipe

	parkNoKey, publishOnDown, rejectChanged, confirm, noDedup, parkInvalid bool

	metrics sourceMetrics
}

func newSource(cfg Source) (*source, error) {
	if cfg.Provider == "" {
		cfg.Provider = "generic"
	}
	preset, ok := provider.Lookup(cfg.Provider)
	if !ok {
		return nil, fmt.Errorf("unknown provider %q", cfg.Provider)
	}
	s := &source{name: cfg.Name, path: cfg.Path, retention: cfg.Retention, preset: preset}
	var errs []error
	for _, step := range []func(*source, Source, provider.Preset) error{
		setNames, setVerifier, setKeys, setGuard, setType, setRules, setAnswer, setRetention, setChoices,
	} {
		if err := step(s, cfg, preset); err != nil {
			errs = append(errs, err)
		}
	}
	return s, errors.Join(errs...)
}

func setNames(s *source, cfg Source, _ provider.Preset) error {
	if cfg.Name == "" || len(cfg.Name) > maxSourceName || cfg.Name[0] == '-' {
		return fmt.Errorf("the name %q must have 1 to %d characters and not start with -", cfg.Name, maxSourceName)
	}
	for _, c := range cfg.Name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return fmt.Errorf("the name %q may hold letters, digits, _ and - only", cfg.Name)
		}
	}
	if s.path == "" {
		s.path = "/hooks/" + cfg.Name
	}
	if s.path[0] != '/' || strings.ContainsAny(s.path, ":*?#") {
		return fmt.Errorf("the path %q must start with / and hold none of : * ? #", s.path)
	}
	return nil
}

func setVerifier(s *source, cfg Source, preset provider.Preset) error {
	v := cfg.Verify
	s.settings = provider.Settings{
		Scheme: v.Scheme, Header: v.Header, Encoding: v.Encoding, Prefix: v.Prefix,
		Signed: v.Signed, Timestamp: v.Timestamp, SecretEncoding: v.SecretEncoding, Tolerance: v.Tolerance,
		Secrets: cfg.Secrets, Expiring: cfg.Expiring, Keys: v.Keys, KeysURL: v.KeysURL, ID: v.ID, Token: v.Token, Over: v.Over,
	}
	var err error
	if s.verifier, err = preset.NewVerifier(s.settings); err != nil {
		return err
	}
	s.headers = newHeaderFilter(cfg.KeepHeaders, s.verifier.Credentials())
	s.allowed, err = newAddresses(cfg.AllowIPs)
	return err
}

func setKeys(s *source, cfg Source, preset provider.Preset) error {
	texts := cfg.Keys
	if len(texts) == 0 {
		texts = preset.Keys
	}
	for _, text := range texts {
		r, err := requestRecipe(text)
		if err == nil && r.IsStringified() {
			err = fmt.Errorf("%w: %q finds what an older guard knows; equal bodies can be different events", recipe.ErrRecipe, text)
		}
		if err != nil {
			return fmt.Errorf("key: %w", err)
		}
		s.keys = append(s.keys, r)
		s.needs(r)
	}
	s.keyNames = strings.Join(texts, ", ")
	// A batch is taken apart as JSON, and a form may hold a document.
	s.needsJSON = s.needsJSON || preset.Split != nil
	s.needsForm = s.needsForm || preset.FormJSON != ""
	for _, text := range cfg.PreviousKeys {
		r, err := requestRecipe(text)
		if err == nil && r.IsBody() {
			err = fmt.Errorf("%w: a hash of the body is known for its window only", recipe.ErrRecipe)
		}
		if err != nil {
			return fmt.Errorf("previous_keys: %w", err)
		}
		s.previous = append(s.previous, r)
		s.readsJSON = s.readsJSON || r.NeedsJSON()
		s.needsForm = s.needsForm || r.NeedsForm()
	}
	var err error
	if cfg.Body.Window == 0 {
		cfg.Body.Window = preset.BodyWindow
	}
	s.hash, err = newBodyHash(cfg.Body)
	return err
}

// requestRecipe parses a recipe that reads nothing but the request.
func requestRecipe(text string) (recipe.Recipe, error) {
	r, err := recipe.Parse(text)
	if err == nil && !r.FromRequest() {
		err = fmt.Errorf("%w: %q is not part of the request", recipe.ErrRecipe, text)
	}
	return r, err
}

func (s *source) needs(r recipe.Recipe) {
	s.needsJSON = s.needsJSON || r.NeedsJSON()
	s.needsForm = s.needsForm || r.NeedsForm()
}

// setGuard prepares the second look; who names other keys is on their own.
func setGuard(s *source, cfg Source, preset provider.Preset) error {
	if len(cfg.Keys) > 0 && !slices.Equal(cfg.Keys, preset.Keys) && !preset.Guard.Reject {
		return nil
	}
	s.guard = preset.Guard
	if s.guard.Recipe == "" || s.guard.Recipe == "body" {
		return nil
	}
	var err error
	if s.guardRecipe, err = requestRecipe(s.guard.Recipe); err == nil {
		s.readsJSON = s.readsJSON || s.guardRecipe.NeedsJSON()
	}
	return err
}

func setType(s *source, cfg Source, preset provider.Preset) error {
	texts := preset.Types
	if cfg.Type.From != "" {
		texts = []string{cfg.Type.From}
	}
	s.eventType.names = cfg.Type.Map
	for _, text := range texts {
		if constant, ok := strings.CutPrefix(text, "="); ok {
			s.eventType.constant = constant
			break
		}
		r, err := requestRecipe(text)
		if err == nil && r.IsBody() {
			err = fmt.Errorf("%w: a hash is no type", recipe.ErrRecipe)
		}
		if err != nil {
			return fmt.Errorf("type: %w", err)
		}
		s.eventType.recipes = append(s.eventType.recipes, r)
		s.needs(r)
	}
	return nil
}

func setRules(s *source, cfg Source, _ provider.Preset) (err error) {
	if s.accept, err = patterns(cfg.Accept); err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	if s.ignore, err = patterns(cfg.Ignore); err != nil {
		return fmt.Errorf("ignore: %w", err)
	}
	if cfg.Schema != nil {
		if s.schema, err = newSchema(cfg.Schema); err != nil {
			return err
		}
		s.readsJSON = true
	}
	if s.maxItems = cfg.MaxItems; s.maxItems == 0 {
		s.maxItems = defaultMaxItems
	}
	if s.maxItems < 0 {
		return fmt.Errorf("max_items: %d is negative", s.maxItems)
	}
	return nil
}

func patterns(texts []string) ([]topic.Pattern, error) {
	var list []topic.Pattern
	for _, text := range texts {
		p, err := topic.Parse(text)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func setAnswer(s *source, cfg Source, preset provider.Preset) error {
	s.answer = hookonce.Answer{Status: cfg.Respond.Status, Body: cfg.Respond.Body}
	if s.answer == (hookonce.Answer{}) {
		s.answer = hookonce.Answer{Status: preset.Status, Body: preset.Body}
	}
	if s.answer.Status == 0 {
		s.answer.Status = preset.Status
	}
	if s.answer.Status == 0 {
		s.answer.Status = http.StatusOK
	}
	if !success(s.answer.Status) {
		return fmt.Errorf("respond: status %d is no success; senders take 200 to 299 only", s.answer.Status)
	}
	if s.answer.Body != "" && !bodyAllowed(s.answer.Status) {
		return fmt.Errorf("respond: status %d has no body", s.answer.Status)
	}
	return nil
}

func setRetention(s *source, _ Source, preset provider.Preset) error {
	if s.retention == 0 {
		s.retention = preset.Retention
	}
	if s.retention == 0 {
		s.retention = defaultRetention
	}
	if s.retention < 0 {
		return fmt.Errorf("retention: %s is negative", s.retention)
	}
	return nil
}

func setChoices(s *source, cfg Source, preset provider.Preset) error {
	noKey := wordReject
	if preset.ParkNoKey {
		noKey = wordPark
	}
	dedup := wordKey
	if preset.NoDedup {
		dedup = wordNone
	}
	var drop bool
	var errs []error
	for _, c := range []struct {
		name, value, normal, other string
		set                        *bool
	}{
		{"on_no_key", or(cfg.OnNoKey, noKey), wordReject, wordPark, &s.parkNoKey},
		{"dedup", or(cfg.Dedup, dedup), wordKey, wordNone, &s.noDedup},
		{"on_invalid", or(cfg.OnInvalid, wordReject), wordReject, wordPark, &s.parkInvalid},
		{"unmatched", or(cfg.Unmatched, wordKeep), wordKeep, wordDrop, &drop},
		{"on_store_down", or(cfg.OnStoreDown, wordPublish), wordReject, wordPublish, &s.publishOnDown},
		{"on_changed_body", or(cfg.OnChangedBody, wordAccept), wordAccept, wordReject, &s.rejectChanged},
		{"ack", or(cfg.Ack, wordClaim), wordClaim, wordConfirm, &s.confirm},
	} {
		if c.value != c.normal && c.value != c.other {
			errs = append(errs, fmt.Errorf("%s: write %s or %s, not %q", c.name, c.normal, c.other, c.value))
		}
		*c.set = c.value == c.other
	}
	if drop {
		s.unmatched = wordDrop
	}
	return errors.Join(errs...)
}

func or(value, byDefault string) string {
	if value == "" {
		return byDefault
	}
	return value
}
