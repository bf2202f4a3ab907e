package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/hookonce/hookonce"
)

// Client calls the API. Errors that the API answers are [*Problem]s; a 404 is
// an inbox.ErrNotFound too.
type Client struct {
	// BaseURL is where the admin listener is, as http://127.0.0.1:8081.
	BaseURL string
	// Token is shown when not empty.
	Token string
	// Transport carries the requests; nil means http.DefaultTransport. See
	// [HandlerTransport].
	Transport http.RoundTripper
}

// Events lists events, received last in front.
func (c *Client) Events(ctx context.Context, s Selection, p Page) (List[Event], error) {
	return get[List[Event]](ctx, c, eventsPath+"?"+s.query(p).Encode())
}

// Event is all that is known of one event, an item for each group.
func (c *Client) Event(ctx context.Context, key hookonce.Key) ([]Detail, error) {
	l, err := get[List[Detail]](ctx, c, eventsPath+"/"+pathSegment(key.Source)+"/"+pathSegment(key.ID))
	return l.Items, err
}

// Dead lists dead letters, dead first in front.
func (c *Client) Dead(ctx context.Context, s Selection, p Page) (List[Dead], error) {
	return get[List[Dead]](ctx, c, "/api/v1/dead?"+s.query(p).Encode())
}

// DeadGroups counts dead letters that died alike.
func (c *Client) DeadGroups(ctx context.Context, s Selection) ([]DeadGroup, error) {
	l, err := get[List[DeadGroup]](ctx, c, "/api/v1/dead/groups?"+s.query(Page{}).Encode())
	return l.Items, err
}

// Replay sends dead letters to their groups again. each sees every line as it
// comes; nil for none. An error means that the totals did not arrive: what the
// lines say has happened all the same.
func (c *Client) Replay(ctx context.Context, change Change, each func(Line)) (Totals, error) {
	return c.change(ctx, "/api/v1/dead/replay", change, each)
}

// Discard gives dead letters up for good; as Replay otherwise.
func (c *Client) Discard(ctx context.Context, change Change, each func(Line)) (Totals, error) {
	return c.change(ctx, "/api/v1/dead/discard", change, each)
}

// Groups lists the consumer groups.
func (c *Client) Groups(ctx context.Context) ([]Group, error) {
	l, err := get[List[Group]](ctx, c, groupsPath)
	return l.Items, err
}

// Pause keeps a group from taking events, in every process and over restarts.
func (c *Client) Pause(ctx context.Context, group, comment string) (Group, error) {
	request, err := json.Marshal(PauseRequest{Comment: comment})
	if err != nil {
		return Group{}, fmt.Errorf("admin request: %w", err)
	}
	return ask[Group](ctx, c, http.MethodPost, groupsPath+"/"+pathSegment(group)+"/pause", request)
}

// Resume lets a paused group go on.
func (c *Client) Resume(ctx context.Context, group string) (Group, error) {
	return ask[Group](ctx, c, http.MethodPost, groupsPath+"/"+pathSegment(group)+"/resume", []byte("{}"))
}

// pathSegment escapes all that would not stay itself within a path.
func pathSegment(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

func get[T any](ctx context.Context, c *Client, path string) (T, error) {
	return ask[T](ctx, c, http.MethodGet, path, nil)
}

func ask[T any](ctx context.Context, c *Client, method, path string, request []byte) (T, error) {
	var answer T
	body, err := c.do(ctx, method, path, request)
	if err != nil {
		return answer, err
	}
	defer func() { _ = body.Close() }()
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return answer, fmt.Errorf("read the admin API's answer: %w", err)
	}
	return answer, nil
}

// change reads lines until the totals, which are the line with a total.
func (c *Client) change(ctx context.Context, path string, change Change, each func(Line)) (Totals, error) {
	request, err := json.Marshal(change)
	if err != nil {
		return Totals{}, fmt.Errorf("admin request: %w", err)
	}
	body, err := c.do(ctx, http.MethodPost, path, request)
	if err != nil {
		return Totals{}, err
	}
	defer func() { _ = body.Close() }()
	lines := json.NewDecoder(body)
	for {
		var next struct {
			Line
			Totals
			Total *int `json:"total"`
		}
		if err := lines.Decode(&next); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return Totals{}, fmt.Errorf("the admin API broke off before the totals: %w", err)
		}
		if next.Total != nil {
			next.Totals.Total = *next.Total
			return next.Totals, nil
		}
		if each != nil {
			each(next.Line)
		}
	}
}

// do sends a request and returns the body of a success.
func (c *Client) do(ctx context.Context, method, path string, body []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.BaseURL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("admin URL %q: %w", c.BaseURL, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", typeJSON)
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	client := http.Client{Transport: c.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the token is for this address alone
	}}
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("speak to the admin API: %w", err)
	}
	if res.StatusCode == http.StatusOK {
		return res.Body, nil
	}
	defer func() { _ = res.Body.Close() }()
	p := &Problem{Title: http.StatusText(res.StatusCode), Status: res.StatusCode}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == typeProblem {
		_ = json.NewDecoder(io.LimitReader(res.Body, maxRequest)).Decode(p) // the status says enough
	}
	return nil, p
}
