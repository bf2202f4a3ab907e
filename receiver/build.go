package receiver

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

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
	verifier   provider.Verifier
	keys       []recipe.Recipe
	keyNames   string // for the answer to a request without a key
	previous   []recipe.Recipe
	hash       bodyHash
	eventType  typeRule
	needsJSON  bool // a body that looks like JSON must be
	readsJSON  bool // JSON is looked for, and may be missing
	needsForm  bool
	accept     []topic.Pattern
	answer     hookonce.Answer
	retention  time.Duration
	headers    headerFilter
	unmatched  string // of the event: "" or "drop"

	parkNoKey, publishOnDown, rejectChanged, confirm bool

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
	s := &source{name: cfg.Name, path: cfg.Path, retention: cfg.Retention}
	var errs []error
	for _, step := range []func(*source, Source, provider.Preset) error{
		setNames, setVerifier, setKeys, setType, setAccept, setAnswer, setRetention, setChoices,
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
	if v := cfg.Verify; preset.Name != "generic" && v.Scheme+v.Header+v.Encoding+v.Prefix != "" {
		return fmt.Errorf("provider %s has a verification of its own; verify: takes only tolerance", preset.Name)
	}
	settings := provider.Settings{
		Scheme: cfg.Verify.Scheme, Header: cfg.Verify.Header, Encoding: cfg.Verify.Encoding, Prefix: cfg.Verify.Prefix,
		Tolerance: cfg.Verify.Tolerance, Secrets: cfg.Secrets,
	}
	if settings.Tolerance == 0 {
		settings.Tolerance = provider.DefaultTolerance
	}
	var err error
	if s.verifier, err = preset.Verifier(settings); err != nil {
		return err
	}
	s.headers = newHeaderFilter(cfg.KeepHeaders, s.verifier.Credentials())
	return nil
}

func setKeys(s *source, cfg Source, preset provider.Preset) error {
	texts := cfg.Keys
	if len(texts) == 0 {
		texts = preset.Keys
	}
	for _, text := range texts {
		r, err := requestRecipe(text)
		if err != nil {
			return fmt.Errorf("key: %w", err)
		}
		s.keys = append(s.keys, r)
		s.needs(r)
	}
	s.keyNames = strings.Join(texts, ", ")
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

func setType(s *source, cfg Source, preset provider.Preset) error {
	from := cfg.Type.From
	if from == "" {
		from = preset.Type
	}
	s.eventType.names = cfg.Type.Map
	constant, ok := strings.CutPrefix(from, "=")
	if ok || from == "" {
		s.eventType.constant = constant
		return nil
	}
	r, err := requestRecipe(from)
	if err == nil && r.IsBody() {
		err = fmt.Errorf("%w: a hash is no type", recipe.ErrRecipe)
	}
	if err != nil {
		return fmt.Errorf("type: %w", err)
	}
	s.eventType.recipe = r
	s.needs(r)
	return nil
}

func setAccept(s *source, cfg Source, _ provider.Preset) error {
	for _, text := range cfg.Accept {
		p, err := topic.Parse(text)
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		s.accept = append(s.accept, p)
	}
	return nil
}

func setAnswer(s *source, cfg Source, preset provider.Preset) error {
	s.answer = hookonce.Answer{Status: cfg.Respond.Status, Body: cfg.Respond.Body}
	if s.answer.Status == 0 {
		s.answer.Status = preset.Status
		if s.answer.Body == "" {
			s.answer.Body = preset.Body
		}
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
	var drop bool
	var errs []error
	for _, c := range []struct {
		name, value, normal, other string
		set                        *bool
	}{
		{"on_no_key", or(cfg.OnNoKey, noKey), wordReject, wordPark, &s.parkNoKey},
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
