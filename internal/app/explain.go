package app

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/receiver"
)

// maxRequest bounds the request that explain reads.
const maxRequest = 32 << 20

// explaining is the flags of explain.
type explaining struct {
	provider, source string
	secrets          []string
	asJSON           bool
}

func (c *cli) explainCommand() *cobra.Command {
	var e explaining
	cmd := &cobra.Command{
		Use:   "explain --provider NAME < request.http",
		Short: "Show step by step what the receiver would decide about a request, and why",
		Long: "Reads an HTTP request (request line, headers, an empty line, the body) and shows what a receiver would make of it: its signature, " +
			"type, key and answer. With --source as the source of the configuration, with --provider as a provider's preset and the secrets given. " +
			"Nothing is claimed.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, source, err := c.explained(e)
			if err != nil {
				return err
			}
			r, err := readRequest(cmd.InOrStdin())
			if err != nil {
				return usageError{err}
			}
			found, err := receiver.Explain(cfg, source, r)
			if err != nil {
				return err
			}
			if e.asJSON {
				for _, f := range found {
					if err := c.printJSON(f); err != nil {
						return err
					}
				}
				return nil
			}
			for _, f := range found {
				text := fmt.Sprintf("%-10s %s", f.Step, f.Result)
				if f.Detail != "" {
					text += "\n           " + strings.ReplaceAll(f.Detail, "\n", " ")
				}
				fmt.Fprintln(c.stdout, text)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&e.provider, "provider", "", "a provider's preset; see providers list")
	f.StringVar(&e.source, "source", "", "a source of the configuration")
	f.StringArrayVar(&e.secrets, "secret", nil, "with --provider: the secret to verify with; may be repeated")
	f.BoolVar(&e.asJSON, "json", false, "one JSON object a line")
	return cmd
}

// explained are the settings that the flags choose.
func (c *cli) explained(e explaining) (receiver.Config, receiver.Source, error) {
	none := receiver.Source{}
	switch {
	case (e.provider == "") == (e.source == ""):
		return receiver.Config{}, none, usageError{errors.New("explain needs --provider NAME or --source NAME, and not both")}
	case e.source != "" && len(e.secrets) > 0:
		return receiver.Config{}, none, usageError{errors.New("--secret goes with --provider; a source has its own")}
	case e.provider != "":
		if _, err := preset(e.provider); err != nil {
			return receiver.Config{}, none, err
		}
		source := receiver.Source{Name: e.provider, Provider: e.provider, Secrets: e.secrets}
		if e.provider == "generic" && len(e.secrets) > 0 {
			source.Verify.Scheme = "hmac-sha256"
		}
		return receiver.Config{}, source, nil
	}
	cfg, _, err := c.load(config.Serve)
	if err != nil {
		return receiver.Config{}, none, err
	}
	for _, source := range sources(cfg) {
		if source.Name == e.source {
			return receiver.Config{PublicURL: cfg.Receiver.PublicURL, MaxBody: int64(cfg.Receiver.MaxBody)}, source, nil
		}
	}
	return receiver.Config{}, none, fmt.Errorf("%w: source %q is not in the configuration", errNotFound, e.source)
}

// readRequest reads a request as it stands in a file. The body is what follows
// the empty line, up to Content-Length when that names less: editors put a
// line end behind it.
func readRequest(in io.Reader) (*http.Request, error) {
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return nil, errors.New("explain reads a request from its standard input: hookonce explain … < request.http")
		}
	}
	text, err := io.ReadAll(io.LimitReader(in, maxRequest+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxRequest {
		return nil, fmt.Errorf("the request has more than %d bytes", maxRequest)
	}
	head, body := text, []byte(nil)
	for _, end := range []string{"\r\n\r\n", "\n\n"} {
		if at := bytes.Index(text, []byte(end)); at >= 0 && at < len(head) {
			head, body = text[:at], text[at+len(end):]
		}
	}
	r, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(head), strings.NewReader("\r\n\r\n"))))
	if err != nil {
		return nil, fmt.Errorf("this is no HTTP request (first line, headers, an empty line, the body): %w", err)
	}
	if n, err := strconv.Atoi(r.Header.Get("Content-Length")); err == nil && n >= 0 && n < len(body) {
		body = body[:n]
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	return r, nil
}
