// Package admin is how people and tools look at a running system and act on
// it: health, metrics, and the API behind "hookonce events" and "hookonce
// dead". It needs no server of its own kind:
//
//	s := admin.New(admin.Options{Inbox: in, Queue: q, Health: checks, Metrics: promhttp.Handler(), Token: token})
//	http.ListenAndServe("127.0.0.1:8081", s.Handler())
//
// serves
//
//	GET  /healthz /readyz /metrics               no token needed
//	GET  /api/v1/events                          {items, next}, received last in front
//	GET  /api/v1/events/<source>/<key>           {items}: one a group, with steps and timeline
//	GET  /api/v1/dead                            {items, next}, dead first in front
//	GET  /api/v1/dead/groups                     {items}: what died alike, counted
//	POST /api/v1/dead/replay /api/v1/dead/discard
//
// The two changes answer application/x-ndjson: a line {key, group, result}
// for each dead letter as it is dealt with, and the totals at the end.
//
// [Client] speaks to it; with [HandlerTransport] it speaks to a Handler in the
// same process, so that a command works alike on a running system and on
// stores that it has opened itself.
//
// With a token every request but the first three needs it, as a Bearer token.
// Without one only requests to 127.0.0.1, [::1] or localhost by name are
// answered, so that no web page can reach in by a name of its own. Changes
// that a browser sends from another origin are refused either way.
package admin
