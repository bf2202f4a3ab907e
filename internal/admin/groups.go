package admin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// Group is a consumer group as operators see it.
type Group struct {
	Group    string `json:"group"`
	Paused   bool   `json:"paused"`
	PausedAt Time   `json:"paused_at"`
	Reason   string `json:"reason,omitempty"`
}

// PauseRequest asks for a group to be paused.
type PauseRequest struct {
	Comment string `json:"comment,omitempty"`
}

func (s *Service) listGroups(w http.ResponseWriter, r *http.Request) {
	paused, err := s.o.Inbox.Paused(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	names := slices.Clone(s.o.Groups)
	for name := range paused {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	l := List[Group]{Items: []Group{}}
	for _, name := range names {
		p, is := paused[name]
		l.Items = append(l.Items, Group{Group: name, Paused: is, PausedAt: Time{p.At}, Reason: p.Reason})
	}
	slices.SortFunc(l.Items, func(x, y Group) int { return cmp.Compare(x.Group, y.Group) })
	writeJSON(w, http.StatusOK, l)
}

func (s *Service) pause(w http.ResponseWriter, r *http.Request) {
	var req PauseRequest
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	d.DisallowUnknownFields()
	if err := d.Decode(&req); err != nil && err != io.EOF {
		problem(w, http.StatusBadRequest, "the body must be a JSON object with comment, or empty: "+err.Error())
		return
	}
	s.setPaused(w, r, true, req.Comment)
}

func (s *Service) resume(w http.ResponseWriter, r *http.Request) { s.setPaused(w, r, false, "") }

func (s *Service) setPaused(w http.ResponseWriter, r *http.Request, paused bool, comment string) {
	group := r.PathValue("group")
	if s.o.Groups != nil && !slices.Contains(s.o.Groups, group) {
		problem(w, http.StatusNotFound, fmt.Sprintf("there is no group %q here; there are: %s", group, strings.Join(s.o.Groups, ", ")))
		return
	}
	var err error
	if paused {
		_, err = s.o.Inbox.Pause(r.Context(), group, comment)
	} else {
		_, err = s.o.Inbox.Resume(r.Context(), group)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.o.Logger.Info("group set", "group", group, "paused", paused, "why", comment)
	all, err := s.o.Inbox.Paused(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	p, is := all[group]
	writeJSON(w, http.StatusOK, Group{Group: group, Paused: is, PausedAt: Time{p.At}, Reason: p.Reason})
}
