package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/queue/queuetest"
	"github.com/hookonce/hookonce/internal/store/sqlite"
)

func TestQueue(t *testing.T) {
	queuetest.Run(t, queuetest.Harness{Open: openForSuite})
}

func openForSuite(t *testing.T, groups ...queuetest.Group) queuetest.Opened {
	o := sqlite.Options{
		Path: filepath.Join(t.TempDir(), "hookonce.db"),
		Route: func(e hookonce.Event) []string {
			var names []string
			for _, g := range groups {
				if g.Wants(e) {
					names = append(names, g.Name)
				}
			}
			return names
		},
	}
	s := open(t, o)
	return queuetest.Opened{Queue: s, Restart: func() queue.Queue {
		must(t, s.Close())
		return open(t, o)
	}}
}
