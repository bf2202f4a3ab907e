package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hookonce/hookonce/internal/inbox"
)

// Change asks for dead letters to be replayed or discarded.
type Change struct {
	Selection
	// All is needed where nothing is selected, so that nobody means everything
	// by accident.
	All bool `json:"all,omitempty"`
	// DryRun only says what would be done.
	DryRun bool `json:"dry_run,omitempty"`
	// Limit is how many letters at most; 0 means no limit.
	Limit int `json:"limit,omitempty"`
	// Rate is how many letters a second at most; 0 means no limit.
	Rate float64 `json:"rate,omitempty"`
	// Comment is why, for the timeline. A decision needs one.
	Comment string `json:"comment,omitempty"`
	// Unknown is, for a replay, a person's word on effects that may have happened:
	// "done", they have, or "rerun", try them again.
	Unknown string `json:"unknown,omitempty"`
	// Force runs steps again that are done: Steps, or AllSteps.
	Force    bool     `json:"force,omitempty"`
	Steps    []string `json:"steps,omitempty"`
	AllSteps bool     `json:"all_steps,omitempty"`
}

// The words of Change.Unknown.
const (
	UnknownDone  = "done"
	UnknownRerun = "rerun"
)

// checkDecision finds what is wrong with a person's decision.
func (c Change) checkDecision(replay bool) error {
	decides := c.Unknown != "" || c.Force
	switch {
	case !replay && (decides || len(c.Steps) > 0 || c.AllSteps):
		return errors.New("unknown, force and steps are for replays")
	case c.Unknown != "" && c.Unknown != UnknownDone && c.Unknown != UnknownRerun:
		return fmt.Errorf("unknown is %q; it is %s (the effect has happened) or %s (try it again)", c.Unknown, UnknownDone, UnknownRerun)
	case c.Unknown != "" && c.Force:
		return errors.New("unknown and force exclude each other")
	case c.Force && (len(c.Steps) > 0) == c.AllSteps:
		return errors.New("force needs the names of the steps to run again, or all_steps")
	case !c.Force && (len(c.Steps) > 0 || c.AllSteps):
		return errors.New("steps are named with force only")
	case decides && strings.TrimSpace(c.Comment) == "":
		return errors.New("this decision is recorded: say why")
	}
	return nil
}

// Line is what became of one dead letter.
type Line struct {
	Key    string `json:"key"` // full
	Group  string `json:"group"`
	Result string `json:"result"`
}

// The results of lines; "failed: " and "skipped: unknown step " have more behind.
const (
	Replayed    = "replayed"
	Discarded   = "discarded"
	WouldReplay = "would be replayed"
	WouldDrop   = "would be discarded"
	AlreadyDone = "skipped: already done"
	NotDead     = "skipped: not dead"
	NotUnknown  = "skipped: no unknown step"
	unknownStep = "skipped: unknown step "
	failed      = "failed: "
)

// Totals end a change.
type Totals struct {
	Total     int `json:"total"`
	Replayed  int `json:"replayed"`
	Discarded int `json:"discarded,omitempty"`
	Skipped   int `json:"skipped"`
	Failed    int `json:"failed"`
	// Planned counts the lines of a dry run.
	Planned int `json:"planned,omitempty"`
	// Found is false when a key was named that no group has a record of.
	Found *bool `json:"found,omitempty"`
	// Stopped says why a change ended before everything selected was dealt with.
	Stopped string `json:"stopped,omitempty"`
}

// count adds a line.
func (t *Totals) count(result string) {
	t.Total++
	switch {
	case result == Replayed:
		t.Replayed++
	case result == Discarded:
		t.Discarded++
	case strings.HasPrefix(result, failed):
		t.Failed++
	case strings.HasPrefix(result, "skipped: "):
		t.Skipped++
	default:
		t.Planned++
	}
}

const maxRequest = 64 << 10

// change reads and checks the body of a change; false when it was answered.
func (s *Service) change(w http.ResponseWriter, r *http.Request, replay bool) (Change, inbox.Filter, bool) {
	var c Change
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		problem(w, http.StatusBadRequest, "the body must be a JSON object with filters, all, dry_run, limit, rate: "+err.Error())
		return c, inbox.Filter{}, false
	}
	filter, err := c.filter(s.o.Now())
	if c.Empty() && !c.All {
		err = errors.Join(err, errors.New(`nothing is selected: give a filter, or "all": true for every dead letter`))
	}
	if !c.Empty() && c.All {
		err = errors.Join(err, errors.New(`"all" and filters exclude each other`))
	}
	if c.Limit < 0 || c.Rate < 0 {
		err = errors.Join(err, errors.New("limit and rate must not be negative"))
	}
	err = errors.Join(err, c.checkDecision(replay))
	if c.State != "" {
		err = errors.Join(err, errors.New("state selects no dead letters"))
	}
	if err != nil {
		problem(w, http.StatusBadRequest, strings.ReplaceAll(err.Error(), "\n", "; "))
		return c, filter, false
	}
	return c, filter, true
}

// ndjson writes lines as they come.
type ndjson struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	enc *json.Encoder
}

func startNDJSON(w http.ResponseWriter) *ndjson {
	w.Header().Set("Content-Type", typeNDJSON)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &ndjson{w: w, rc: http.NewResponseController(w), enc: enc}
}

func (n *ndjson) write(v any) error {
	if err := n.enc.Encode(v); err != nil {
		return err
	}
	if err := n.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
