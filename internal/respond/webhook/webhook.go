// Package webhook posts incidents to a URL as Alertmanager's webhook (version 4) would, so that whatever reads
// Alertmanager reads Tocsin, or as the incident itself. The URL may hold a secret and is never shown.
package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/route"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Format is the shape of the body.
type Format string

const (
	// Alertmanager is the webhook body of version 4 with one alert.
	Alertmanager Format = "alertmanager"
	// Native is {action, key, incident}.
	Native Format = "native"
)

// UnmarshalText reads one of the two.
func (f *Format) UnmarshalText(b []byte) (err error) {
	*f, err = strictyaml.Enum("webhook format", b, Alertmanager, Native)
	return err
}

// Config is one item of webhook_configs.
type Config struct {
	URL     strictyaml.Secret `yaml:"url"`
	URLFile string            `yaml:"url_file"`
	Format  Format            `yaml:"format"`
}

// Kind is how routes files name this integration.
var Kind = route.Kind{Key: "webhook_configs", Name: "webhook", Decode: func(n *yaml.Node) (any, error) {
	c := &Config{Format: Alertmanager}
	if err := strictyaml.DecodeNode(n, c); err != nil {
		return nil, err
	}
	switch {
	case c.URL == "" && c.URLFile == "":
		return nil, errors.New("url or url_file is required")
	case c.URL != "" && c.URLFile != "":
		return nil, errors.New("give url or url_file, not both")
	}
	return c, nil
}}

// PlaceID names the URL without showing it.
func PlaceID(u strictyaml.Secret) string {
	sum := sha256.Sum256([]byte(u.Reveal()))
	return Kind.Name + "-" + hex.EncodeToString(sum[:4])
}

// Sender posts to one URL.
type Sender struct {
	url, external, receiver string
	format                  Format
	secrets                 []string
	http                    *http.Client
}

var _ respond.Sender = (*Sender)(nil)

// New makes a sender; u is the resolved address.
func New(c *Config, u strictyaml.Secret, receiver, external string, client *http.Client) (*Sender, error) {
	parsed, err := url.Parse(u.Reveal())
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return nil, errors.New("webhook: url must be an http(s) address")
	}
	secrets := []string{u.Reveal()}
	if q := parsed.RequestURI(); len(q) > 1 {
		secrets = append(secrets, q)
	}
	if pw, ok := parsed.User.Password(); ok {
		secrets = append(secrets, pw)
	}
	return &Sender{url: u.Reveal(), external: strings.TrimSuffix(external, "/"), receiver: receiver, format: c.Format, secrets: secrets, http: client}, nil
}

// Key is the incident's id; receivers fold repeats by groupKey and fingerprint.
func (s *Sender) Key(incidentID string) string { return "tocsin/" + incidentID }

// Send posts the state after the step.
func (s *Sender) Send(ctx context.Context, d respond.Delivery) (respond.Receipt, error) {
	body, err := json.Marshal(s.body(d))
	if err != nil {
		return respond.Receipt{}, &respond.SendError{Class: respond.Permanent, Reason: respond.ReasonInternal, Err: fmt.Errorf("webhook: encode: %w", err)}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return respond.Receipt{}, respond.TransportError(err, s.secrets...)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Tocsin")
	resp, err := s.http.Do(req)
	if err != nil {
		return respond.Receipt{}, respond.TransportError(err, s.secrets...)
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if se := respond.StatusError(resp.StatusCode, resp.Header, string(text), s.secrets...); se != nil {
		return respond.Receipt{}, se
	}
	return respond.Receipt{Key: d.Key}, nil
}

type alert struct {
	Status       string            `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

func (s *Sender) body(d respond.Delivery) any {
	i := d.Notice.Incident
	if s.format == Native {
		return map[string]any{"version": "1", "action": d.Action, "key": d.Key, "receiver": s.receiver, "notice": d.Notice}
	}
	labels := respond.Labels(i)
	labels["alertname"] = "Incident"
	labels["incident"] = i.ID
	annotations := map[string]string{"summary": respond.Headline(d.Notice), "description": i.Reason}
	if d.Notice.Runbook != "" {
		annotations["runbook_url"] = d.Notice.Runbook
	}
	if sus, ok := respond.FirstSuspect(i); ok {
		annotations["suspect"] = respond.SuspectName(sus)
	}
	sum := sha256.Sum256([]byte(i.ID))
	a := alert{Status: "firing", Labels: labels, Annotations: annotations, StartsAt: i.StartedAt, Fingerprint: hex.EncodeToString(sum[:8])}
	if s.external != "" {
		a.GeneratorURL = s.external + "/incidents/" + url.PathEscape(i.ID)
	}
	if d.Action == respond.ActionClose {
		if a.Status, a.EndsAt = "resolved", i.ResolvedAt; a.EndsAt.IsZero() {
			a.EndsAt = d.Notice.At
		}
	}
	return map[string]any{
		"version": "4", "groupKey": `{}:{incident=` + strconv.Quote(i.ID) + `}`, "truncatedAlerts": 0, "status": a.Status, "receiver": s.receiver,
		"groupLabels": map[string]string{"incident": i.ID}, "routeLabels": map[string]string{}, "commonLabels": labels, "commonAnnotations": annotations,
		"externalURL": s.external, "alerts": []alert{a},
	}
}
