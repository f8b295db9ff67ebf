package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// maxAnswer bounds what the client reads of one answer.
const maxAnswer = 64 << 20

// client speaks to the API of a running Tocsin.
type client struct {
	base string
	http http.Client
}

// addClientFlags gives a command the flag that says which Tocsin to ask.
func addClientFlags(c *cobra.Command) *string {
	base := os.Getenv("TOCSIN_URL")
	if base == "" {
		base = "http://127.0.0.1:9460"
	}
	return c.PersistentFlags().String("url", base, "address of a running Tocsin (also TOCSIN_URL)")
}

func newClient(base string) *client {
	return &client{base: strings.TrimRight(base, "/"), http: http.Client{Timeout: 30 * time.Second}}
}

func (c *client) get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, path, nil, into)
}

func (c *client) post(ctx context.Context, path string, body, into any) error {
	return c.do(ctx, http.MethodPost, path, body, into)
}

func (c *client) do(ctx context.Context, method, path string, body, into any) error {
	if u, err := url.Parse(c.base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return usageError{fmt.Errorf("--url %q is no address such as http://127.0.0.1:9460", c.base)}
	}
	var rd io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		rd = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, rd)
	if err != nil {
		return fmt.Errorf("--url %q: %w", c.base, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return fmt.Errorf("no Tocsin answers at %s: %w", c.base, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", c.base, err)
	}
	if res.StatusCode/100 != 2 {
		var e struct{ Error string }
		if json.Unmarshal(data, &e) == nil && e.Error != "" {
			return errors.New(e.Error)
		}
		return fmt.Errorf("%s answered %s to %s", c.base, res.Status, path)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("the answer of %s to %s is no JSON that this version knows: %w", c.base, path, err)
	}
	return nil
}
