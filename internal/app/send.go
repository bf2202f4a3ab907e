package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/receiver/provider"
)

const (
	// maxCopies and maxSenders bound one send.
	maxCopies  = 100_000
	maxSenders = 256
	// sendTimeout is how long one copy waits for its answer.
	sendTimeout = 30 * time.Second
)

// sending is the flags of send.
type sending struct {
	provider, secret, id    string
	made                    time.Time
	duplicates, concurrency int
	tamper, print, asJSON   bool
}

// answerLine is the answer to one copy.
type answerLine struct {
	Status   int    `json:"status"`
	Replayed bool   `json:"replayed"`
	Key      string `json:"key"`
	Items    string `json:"items,omitempty"` // of a request that was split
}

func (c *cli) sendCommand() *cobra.Command {
	var s sending
	cmd := &cobra.Command{
		Use:   "send --provider NAME URL",
		Short: "Deliver a signed event as a provider would, once or many times",
		Long: "Makes one event of a provider, signs a copy as that provider does, and posts it to URL; with --duplicates N as many copies in " +
			"all, --concurrency C at a time. Prints a line for each answer: status, replayed, key. The receiver's source is what --print-source prints.",
		Args: func(cmd *cobra.Command, args []string) error {
			if want := 1; s.print && len(args) != 0 || !s.print && len(args) != want {
				return usageError{fmt.Errorf("%s wants the receiver's URL, such as http://127.0.0.1:8080/hooks/stripe (with --print-source: nothing)", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.provider == "" {
				return usageError{errors.New("send needs --provider NAME; see hookonce providers list")}
			}
			if s.print {
				entry, err := sourceEntry(s.provider)
				if err == nil {
					fmt.Fprint(c.stdout, entry)
				}
				return err
			}
			return c.send(cmd.Context(), s, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.provider, "provider", "", "whose delivery to make; see providers list")
	f.StringVar(&s.secret, "secret", "", "the source's secret (default: the test secret of --print-source)")
	f.StringVar(&s.id, "id", "", "what makes the event's id; a new one by default")
	f.IntVar(&s.duplicates, "duplicates", 1, "copies in all")
	f.IntVar(&s.concurrency, "concurrency", 1, "copies at a time")
	f.BoolVar(&s.tamper, "tamper", false, "alter what the signature covers, or the credential where the body is not signed; every copy should be refused")
	f.BoolVar(&s.print, "print-source", false, "print an entry for sources: that accepts what is sent")
	f.BoolVar(&s.asJSON, "json", false, "one JSON object a line")
	return cmd
}

func (c *cli) send(ctx context.Context, s sending, address string) error {
	p, err := preset(s.provider)
	if err != nil {
		return err
	}
	target, err := url.Parse(address)
	switch {
	case err != nil || target.Scheme != "http" && target.Scheme != "https" || target.Host == "":
		return usageError{fmt.Errorf("%q is no URL of a receiver; write one like http://127.0.0.1:8080/hooks/%s", address, p.Name)}
	case s.duplicates < 1 || s.duplicates > maxCopies:
		return usageError{fmt.Errorf("--duplicates: 1 to %d copies", maxCopies)}
	case s.concurrency < 1 || s.concurrency > maxSenders:
		return usageError{fmt.Errorf("--concurrency: 1 to %d copies at a time", maxSenders)}
	}
	if s.id == "" {
		s.id = provider.NewID()
	}
	s.made = time.Now()
	client := &http.Client{
		Timeout:       sendTimeout,
		Transport:     &http.Transport{MaxIdleConnsPerHost: s.concurrency, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()

	answers := make([]answerLine, s.duplicates)
	errs := make([]error, s.duplicates)
	next := make(chan int)
	var senders sync.WaitGroup
	for range min(s.concurrency, s.duplicates) {
		senders.Go(func() {
			for i := range next {
				answers[i], errs[i] = sendCopy(ctx, client, p, s, target)
			}
		})
	}
	for i := range s.duplicates {
		next <- i
	}
	close(next)
	senders.Wait()
	return c.printAnswers(s, answers, errs)
}

// sendCopy makes, signs and posts one copy.
func sendCopy(ctx context.Context, client *http.Client, p provider.Preset, s sending, target *url.URL) (answerLine, error) {
	draft, err := p.Sample.Copy(target, s.id, s.secret, s.made, time.Now(), s.tamper)
	if err != nil {
		return answerLine{}, err
	}
	r, err := draft.Request(ctx)
	if err != nil {
		return answerLine{}, err
	}
	w, err := client.Do(r)
	if err != nil {
		return answerLine{}, err
	}
	defer w.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(w.Body, 1<<20)) // so that the connection can be used again
	line := answerLine{
		Status: w.StatusCode, Replayed: w.Header.Get("Idempotent-Replayed") == "true", Items: w.Header.Get("Hookonce-Items"),
	}
	if key, err := hookonce.ParseKey(w.Header.Get("Hookonce-Key")); err == nil {
		line.Key = key.String()
	}
	return line, nil
}

// printAnswers prints a line for each copy, and says in its error what went
// otherwise than it should.
func (c *cli) printAnswers(s sending, answers []answerLine, errs []error) error {
	wrong := 0
	for i, a := range answers {
		if errs[i] != nil {
			continue
		}
		if good := a.Status >= 200 && a.Status <= 299; good == s.tamper {
			wrong++
		}
		if s.asJSON {
			if err := c.printJSON(a); err != nil {
				return err
			}
			continue
		}
		key := escape(a.Key)
		if key == "" && a.Items != "" {
			key = a.Items
		}
		if key == "" {
			key = "-"
		}
		fmt.Fprintf(c.stdout, "%d\t%t\t%s\n", a.Status, a.Replayed, oneLine(key))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("not every copy got an answer: %w", firstOf(err))
	}
	switch {
	case wrong > 0 && s.tamper:
		return fmt.Errorf("%d of %d tampered copies were accepted", wrong, len(answers))
	case wrong > 0:
		return fmt.Errorf("%d of %d copies were not accepted", wrong, len(answers))
	}
	return nil
}

// firstOf is the first of joined errors: copies fail alike.
func firstOf(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
		return joined.Unwrap()[0]
	}
	return err
}
