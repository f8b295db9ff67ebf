package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/tocsin-project/tocsin/internal/console"
	"github.com/tocsin-project/tocsin/internal/incident"
)

// api asks the daemon what it knows, as the command line does.
type api struct {
	base string
	http http.Client
}

func newAPI(base string) *api { return &api{base: base, http: http.Client{Timeout: 20 * time.Second}} }

func (a *api) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return err
	}
	res, err := a.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
		return fmt.Errorf("%s: %s", path, res.Status)
	}
	return json.NewDecoder(res.Body).Decode(into)
}

// Status is the daemon's own account of itself.
func (a *api) Status(ctx context.Context) (s console.Status, err error) {
	return s, a.get(ctx, "/api/v1/status", &s)
}

// Incidents lists all incidents, those that ended too.
func (a *api) Incidents(ctx context.Context) (l []incident.Incident, err error) {
	return l, a.get(ctx, "/api/v1/incidents?state=all&limit=1000", &l)
}

// Incident reads one with its log after an event; full has the whole incident in each.
func (a *api) Incident(ctx context.Context, id string, since uint64, full bool) (in console.IncidentAnswer, err error) {
	return in, a.get(ctx, fmt.Sprintf("/api/v1/incidents/%s?since=%d&full=%t", url.PathEscape(id), since, full), &in)
}

var errEnded = errors.New("the daemon ended")

// waitReady returns when the daemon says that all its parts are up.
func (a *api) waitReady(ctx context.Context, ended <-chan struct{}) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/-/ready", nil)
		if err != nil {
			return err
		}
		res, err := a.http.Do(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<16))
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
