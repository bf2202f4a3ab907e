package receiver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/internal/recipe"
	"github.com/hookonce/hookonce/receiver/provider"
)

// Finding is one decision about a request.
type Finding struct {
	// Step is read, handshake, verify, items, type, key, schema, answer or warning.
	Step string `json:"step"`
	// Result is what was decided, in a word or two.
	Result string `json:"result"`
	// Detail says why.
	Detail string `json:"detail,omitempty"`
}

// Explain tells step by step what a receiver with these settings would decide
// about a request to the source, and why. Nothing is claimed. Without a secret
// the signature is passed over, which a finding says.
func Explain(cfg Config, sc Source, r *http.Request) ([]Finding, error) {
	cfg.setDefaults()
	cfg.PublicURL = strings.TrimRight(cfg.PublicURL, "/")
	e := &explanation{rc: &Receiver{cfg: cfg}}
	s, err := newSource(sc)
	if errors.Is(err, provider.ErrConfig) && len(sc.Secrets)+len(sc.Expiring) == 0 {
		e.add("verify", "not checked", err.Error())
		sc.Verify = Verify{Scheme: provider.SchemeNone}
		s, err = newSource(sc)
	}
	if err != nil {
		return nil, err
	}
	s.metrics = newSourceMetrics(cfg.Metrics, s.name)
	e.request(&delivery{source: s, request: r, now: cfg.Now()})
	e.warnMerging(s, sc.Keys)
	return e.found, nil
}

// nowhere takes the answer that is not sent.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}

type explanation struct {
	rc    *Receiver
	found []Finding
}

func (e *explanation) add(step, result, detail string) {
	e.found = append(e.found, Finding{step, result, detail})
}

// refused notes a rejection with the status that the sender would see.
func (e *explanation) refused(step string, r *rejection) {
	detail := r.detail
	if r.err != nil {
		detail = r.err.Error()
	}
	e.add(step, strconv.Itoa(r.status)+" "+r.name, detail)
}

func (e *explanation) request(d *delivery) {
	s := d.source
	if d.request.Method != http.MethodPost {
		if s.preset.Probe == nil || !slices.Contains(s.preset.Methods, d.request.Method) {
			e.refused("handshake", wrongMethod.because("", nil))
			return
		}
		answer, _ := s.preset.Probe(e.rc.providerRequest(d), s.settings)
		e.asked(&answer)
		return
	}
	if rejected := e.rc.read(d, nowhere{}); rejected != nil {
		e.refused("read", rejected)
		return
	}
	e.add("read", fmt.Sprintf("%d bytes", len(d.body)), d.request.Header.Get("Content-Type"))
	answer, rejected := e.rc.authenticate(d)
	switch {
	case answer != nil:
		e.asked(answer)
		return
	case rejected != nil:
		e.refused("verify", rejected)
		return
	}
	if len(e.found) < 2 { // else what was not checked was said
		e.add("verify", "accepted", s.preset.Verifies)
	}
	if rejected := d.open(); rejected != nil {
		e.refused("read", rejected)
		return
	}
	if s.preset.Split != nil {
		items, split, rejected := d.split()
		if rejected != nil {
			e.refused("items", rejected)
			return
		}
		if split {
			e.items(d, items)
			return
		}
	}
	e.event(d, "")
	e.answer(s)
}

func (e *explanation) asked(answer *provider.Reply) {
	r, rejected := handshakeReply(answer)
	if rejected != nil {
		e.refused("handshake", rejected)
		return
	}
	e.add("handshake", strconv.Itoa(r.answer.Status), "answered without a claim: "+strconv.Quote(r.answer.Body))
}

func (e *explanation) items(d *delivery, items []provider.Item) {
	e.add("items", strconv.Itoa(len(items)), "the request is split; each item is claimed by itself")
	for i, item := range items {
		e.event(d.itemDelivery(item), fmt.Sprintf("item %d: ", i+1))
	}
	e.answer(d.source)
}

// event explains type and key of one event.
func (e *explanation) event(d *delivery, which string) {
	wanted, rejected := d.identify()
	if rejected != nil {
		e.refused("key", rejected)
		return
	}
	if !wanted {
		e.add("type", "filtered", which+d.source.eventType.of(&d.input)+" is answered and forgotten")
		return
	}
	c := &d.claim
	e.add("type", which+c.Event.Type, "")
	var tried []string
	for i := range d.source.keys {
		k := &d.source.keys[i]
		if _, ok := k.Eval(&d.input); ok || k.IsBody() && !d.named {
			tried = append(tried, k.String()+" is present")
			break
		}
		tried = append(tried, k.String()+" is absent")
	}
	detail := which + strings.Join(tried, "; ")
	if d.source.noDedup {
		detail += "; dedup: none makes every delivery an event of its own"
	}
	if d.guards > 0 {
		detail += "; " + d.source.guard.Recipe + " is remembered too, as the key is not signed"
	}
	e.add("key", c.Event.Key.Escaped(), detail)
	if c.Event.Parked != "" {
		e.add("key", "parked", which+c.Event.Parked)
	}
}

func (e *explanation) answer(s *source) {
	e.add("answer", strconv.Itoa(s.answer.Status), "for a duplicate too; the key stays claimed for "+s.retention.String())
}

// telling are names of parts that tell one event of a thing from another.
var telling = []string{"type", "event", "event_type", "status", "state", "action", "topic", "kind", "version", "created", "timestamp", "updated_at"}

// warnMerging warns of a key of the user's that is an id of what events are
// about: order 7 paid, and order 7 refunded, would be one event.
func (e *explanation) warnMerging(s *source, own []string) {
	if len(own) == 0 || slices.Equal(own, s.preset.Keys) {
		return
	}
	for i := range s.keys {
		if text := s.keys[i].String(); merges(s.keys[i], s.eventType.recipes) {
			e.add("warning", "may merge events", fmt.Sprintf("%s names what the event is about, not the event: two of its events, such as paid and "+
				"refunded, would be one. Add what tells them apart, as in json:{order.id}:{status}", text))
		}
	}
}

func merges(key recipe.Recipe, types []recipe.Recipe) bool {
	var typeParts []string
	for _, t := range types {
		typeParts = append(typeParts, t.Parts()...)
	}
	parts := key.Parts()
	for _, part := range parts {
		kind, name, _ := strings.Cut(part, ":")
		last := name[strings.LastIndexByte(name, '.')+1:]
		switch {
		case slices.Contains(typeParts, part), slices.Contains(telling, strings.ToLower(last)):
			return false
		case kind == "header": // senders put delivery and event ids there
			return false
		case name == "id" || name == "_id" || strings.Contains(strings.ToLower(name), "event"):
			return false
		}
	}
	return len(parts) > 0
}
