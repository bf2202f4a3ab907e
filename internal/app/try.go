package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/admin"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/jsonpath"
	"github.com/hookonce/hookonce/internal/recipe"
)

func (c *cli) effectsCommand() *cobra.Command {
	effects := &cobra.Command{Use: "effects", Short: "Look at what effects do", RunE: needsSubcommand}
	effects.AddCommand(c.effectsTry())
	return effects
}

// trial is one event and what it is tried on.
type trial struct {
	*cli
	file, group, source, key, eventType string
}

func (c *cli) effectsTry() *cobra.Command {
	t := &trial{cli: c}
	cmd := &cobra.Command{
		Use: "try --event FILE", Short: "Print what the effects would do with an event, and do nothing", Args: noArgs,
		Long: `Print what the effects would do with an event, and do nothing: the SQL with its
values, the e-mail, the request. FILE holds the event's body, or a JSON object
{"key", "type", "source", "headers", "context", "body"}; "-" is stdin. No server is asked
and no secret is needed.`,
		RunE: func(*cobra.Command, []string) error { return t.run() },
	}
	f := cmd.Flags()
	f.StringVar(&t.file, "event", "", "file with the event")
	f.StringVar(&t.group, "group", "", "try this group alone, whatever it matches")
	f.StringVar(&t.source, "source", "", "the event's source (default: the only one of the configuration)")
	f.StringVar(&t.key, "key", "", "its key (default: what the source's recipe finds)")
	f.StringVar(&t.eventType, "type", "", "its type (default: what the source's recipe finds)")
	return cmd
}

func (t *trial) run() error {
	if t.file == "" {
		return usageError{errors.New("which event? name a file: --event order.json, or - for stdin")}
	}
	cfg, _, err := t.load(config.Trial)
	if err != nil {
		return err
	}
	e, err := t.read(cfg)
	if err != nil {
		return err
	}
	chosen, err := t.groups(cfg, e)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.stdout, "event %s, type %s\n", e.Key.Escaped(), e.Type)
	failed := 0
	for _, g := range chosen {
		for _, effect := range cfg.Consumers[g.Name].Effects {
			if err := t.effect(cfg, g, effect, e); err != nil {
				failed++
				fmt.Fprintf(t.stdout, "FAILS: %v\n", err)
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of the effects would fail on this event", failed)
	}
	return nil
}

// groups are those that the event would reach, or the one that was asked for.
func (t *trial) groups(cfg *config.Config, e hookonce.Event) ([]consumer.Group, error) {
	all, err := routes(cfg)
	if err != nil {
		return nil, err
	}
	reached := consumer.Router(all)(e)
	wanted := reached
	if t.group != "" {
		wanted = []string{t.group}
	}
	chosen := slices.DeleteFunc(all, func(g consumer.Group) bool { return !slices.Contains(wanted, g.Name) })
	switch {
	case len(chosen) == 0 && t.group != "":
		return nil, fmt.Errorf("group %s: %w in the configuration", t.group, errNotFound)
	case len(chosen) == 0:
		return nil, fmt.Errorf("a group that matches %s: %w; name one with --group, or another type with --type", e.Topic(), errNotFound)
	case !slices.Contains(reached, chosen[0].Name):
		fmt.Fprintf(t.stderr, "note: group %s does not match %s and would not get this event\n", t.group, e.Topic())
	}
	return chosen, nil
}

// effect prints one effect of a group.
func (t *trial) effect(cfg *config.Config, g consumer.Group, e *config.Effect, event hookonce.Event) error {
	fmt.Fprintf(t.stdout, "\n== %s, %s\n", g.Name, e.Name)
	step, err := compile(cfg, e)
	if err != nil {
		return err
	}
	if step.When != nil {
		ok, err := step.When(event)
		if err != nil {
			return err
		}
		fmt.Fprintf(t.stdout, "when: %s: %v\n", e.When, ok)
		if !ok {
			fmt.Fprintln(t.stdout, "skipped")
			return nil
		}
	}
	subject := event.Key.String()
	if step.OncePer != nil {
		if subject, err = step.OncePer(event); err != nil {
			return fmt.Errorf("once_per: %w", err)
		}
		fmt.Fprintf(t.stdout, "once per: %s = %q\n", e.OncePer, subject)
	}
	if step.OnlyLatest != nil {
		entity, version, err := step.OnlyLatest(event)
		if err != nil {
			return fmt.Errorf("only_latest: %w", err)
		}
		fmt.Fprintf(t.stdout, "only if no newer version of %q than %s was applied\n", entity, version)
	}
	return step.preview(t.stdout, consumer.Try{
		Event: event, Group: g.Name, Step: e.Name, Key: consumer.DownstreamKey(subject, g.Name, e.Name, 0),
		Attempt: 1, MaxAttempts: g.Retry.MaxAttempts,
	})
}

// maxEvent bounds an event's file: more than the largest body, as JSON.
const maxEvent = 64 << 20

// read reads the event and completes it as its source would.
func (t *trial) read(cfg *config.Config) (hookonce.Event, error) {
	text, err := t.content()
	if err != nil {
		return hookonce.Event{}, err
	}
	e, err := parseEvent(text)
	if err != nil {
		return hookonce.Event{}, usageError{fmt.Errorf("%s: %w", t.file, err)}
	}
	if t.source != "" {
		e.Key.Source = t.source
	}
	if e.Key.Source == "" && len(cfg.Sources) == 1 {
		e.Key.Source = sortedKeys(cfg.Sources)[0]
	}
	if e.Key.Source == "" {
		return hookonce.Event{}, usageError{fmt.Errorf("which source is it from? name one with --source: %s", strings.Join(sortedKeys(cfg.Sources), ", "))}
	}
	if t.key != "" {
		e.Key.ID = strings.TrimPrefix(t.key, e.Key.Source+"/")
	}
	if t.eventType != "" {
		e.Type = t.eventType
	}
	if s := cfg.Sources[e.Key.Source]; s != nil {
		asSource(s, &e)
	} else if e.Key.Source != "-" {
		fmt.Fprintf(t.stderr, "note: there is no source %s in the configuration\n", e.Key.Source)
	}
	if e.Key.ID == "" {
		e.Key.ID = "try"
	}
	if e.Type == "" {
		e.Type = "unknown"
	}
	if e.ReceivedAt.IsZero() {
		e.ReceivedAt = time.Now()
	}
	return e, nil
}

func (t *trial) content() ([]byte, error) {
	var in io.Reader = os.Stdin
	if t.file != "-" {
		f, err := os.Open(t.file)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", t.file, errNotFound)
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxEvent+1))
	if err == nil && len(text) > maxEvent {
		err = fmt.Errorf("%s: more than 64MiB", t.file)
	}
	return text, err
}

// whole is an event with all that belongs to it. Body is JSON as it stands, or
// a JSON string with any other text.
type whole struct {
	Key         string            `json:"key"`
	Source      string            `json:"source"`
	Type        string            `json:"type"`
	ContentType string            `json:"content_type"`
	Headers     map[string]string `json:"headers"`
	ReceivedAt  time.Time         `json:"received_at"`
	Context     json.RawMessage   `json:"context"`
	Body        json.RawMessage   `json:"body"`
}

// parseEvent tells an event from its body alone: it has a body, and nothing
// that an event does not have.
func parseEvent(text []byte) (hookonce.Event, error) {
	body := hookonce.Event{Body: text, ContentType: "application/json"}
	if !isWhole(text) {
		return body, nil
	}
	var w whole
	if err := json.Unmarshal(text, &w); err != nil {
		return hookonce.Event{}, fmt.Errorf("is not {key, source, type, headers, body}: %w", err)
	}
	e := hookonce.Event{Type: w.Type, ContentType: w.ContentType, Body: w.Body, Context: w.Context, ReceivedAt: w.ReceivedAt, Key: hookonce.Key{Source: w.Source, ID: w.Key}}
	if e.ContentType == "" {
		e.ContentType = "application/json"
	}
	if w.Source == "" && w.Key != "" {
		if full, err := admin.ParseFullKey(w.Key); err == nil {
			e.Key = full
		}
	}
	e.Key.ID = strings.TrimPrefix(e.Key.ID, e.Key.Source+"/")
	var plain string
	if json.Unmarshal(w.Body, &plain) == nil {
		e.Body = []byte(plain)
	}
	for name, value := range w.Headers {
		if e.Header == nil {
			e.Header = map[string]string{}
		}
		e.Header[http.CanonicalHeaderKey(name)] = value
	}
	return e, nil
}

var wholeNames = []string{"key", "source", "type", "content_type", "headers", "received_at", "context", "body"}

func isWhole(text []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || len(members) < 2 || members["body"] == nil {
		return false
	}
	for name := range members {
		if !slices.Contains(wholeNames, name) {
			return false
		}
	}
	return true
}

// asSource fills in what the source's own recipes find. A preset that is not
// changed keeps its recipes to itself: then the flags say.
func asSource(s *config.Source, e *hookonce.Event) {
	in := &recipe.Input{Source: e.Key.Source, Header: http.Header{}, Context: e.Context}
	for name, value := range e.Header {
		in.Header.Set(name, value)
	}
	if jsonpath.Valid(e.Body) == nil {
		in.JSON = e.Body
	}
	if e.Key.ID == "" {
		for _, text := range s.Key {
			if r, err := recipe.Parse(text); err == nil {
				if id, ok := r.Eval(in); ok {
					e.Key.ID = id
					break
				}
			}
		}
	}
	if fixed, ok := strings.CutPrefix(s.Type.From, "="); ok && e.Type == "" {
		e.Type = fixed
	}
	if r, err := recipe.Parse(s.Type.From); err == nil && e.Type == "" {
		e.Type, _ = r.Eval(in)
		if mapped, ok := s.Type.Map[e.Type]; ok {
			e.Type = mapped
		}
	}
}
