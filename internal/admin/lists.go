package admin

import (
	"errors"
	"net/http"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/inbox"
)

const (
	eventsPath = "/api/v1/events"
	groupsPath = "/api/v1/groups"
)

// selected reads a list request; false when it was answered as a bad one.
func (s *Service) selected(w http.ResponseWriter, r *http.Request) (inbox.Filter, Page, bool) {
	selection, page, err := parseQuery(r.URL.Query())
	filter, err2 := selection.filter(s.o.Now())
	if err := errors.Join(err, err2); err != nil {
		problem(w, http.StatusBadRequest, strings.ReplaceAll(err.Error(), "\n", "; "))
		return filter, page, false
	}
	return filter, page, true
}

func (s *Service) listEvents(w http.ResponseWriter, r *http.Request) {
	filter, page, ok := s.selected(w, r)
	if !ok {
		return
	}
	records, next, err := s.o.Inbox.Events(r.Context(), filter, inbox.Cursor(page.After), page.Limit)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, listOf(records, next, eventOf))
}

// showEvent reads the key from the path as it was sent, because only there are
// its own slashes told from the path's.
func (s *Service) showEvent(w http.ResponseWriter, r *http.Request) {
	key, err := hookonce.ParseKey(strings.TrimPrefix(r.URL.EscapedPath(), eventsPath+"/"))
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	records, err := s.o.Inbox.Event(r.Context(), key)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	details := listOf(records, "", detailOf)
	for i, record := range records {
		if record.State != inbox.Dead {
			continue
		}
		letter, err := s.o.Inbox.Letter(r.Context(), record.Group, key)
		switch {
		case err == nil:
			details.Items[i].Content = contentOf(letter.Event)
		case !errors.Is(err, inbox.ErrNotFound): // it may have been replayed just now
			s.fail(w, r, err)
			return
		}
	}
	writeJSON(w, http.StatusOK, details)
}

func (s *Service) listDead(w http.ResponseWriter, r *http.Request) {
	filter, page, ok := s.selected(w, r)
	if !ok {
		return
	}
	letters, next, err := s.o.Inbox.Letters(r.Context(), filter, inbox.Cursor(page.After), page.Limit)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, listOf(letters, next, deadOf))
}

func (s *Service) listDeadGroups(w http.ResponseWriter, r *http.Request) {
	filter, _, ok := s.selected(w, r)
	if !ok {
		return
	}
	groups, err := s.o.Inbox.DeadGroups(r.Context(), filter)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, listOf(groups, "", deadGroupOf))
}
