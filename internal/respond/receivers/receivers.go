// Package receivers is the list of all kinds of receivers, and makes the places of a routes file out of it. A new kind
// is a package of its own and one entry here.
package receivers

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/pagerduty"
	"github.com/tocsin-project/tocsin/internal/respond/route"
	"github.com/tocsin-project/tocsin/internal/respond/slack"
	"github.com/tocsin-project/tocsin/internal/respond/webhook"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// builder makes the place of one integration.
type builder func(b *build, i route.Integration, receiver string) (respond.Place, error)

type entry struct {
	kind  route.Kind
	build builder
}

// entries is the list. A test holds it to the shipped routes and to the documentation of each kind.
var entries = []entry{
	{pagerduty.Kind, buildPagerDuty},
	{slack.Kind, buildSlack},
	{webhook.Kind, buildWebhook},
}

// Kinds are all kinds, for reading a routes file.
func Kinds() []route.Kind {
	out := make([]route.Kind, len(entries))
	for i, e := range entries {
		out[i] = e.kind
	}
	return out
}

// Load reads a routes file with all kinds. No secret is read.
func Load(file string, data []byte) (*route.Config, error) { return route.Load(file, data, Kinds()) }

// Options are what building needs beside the file.
type Options struct {
	// Dir is where relative *_file names are looked up, unless the file's global.secrets_dir says otherwise.
	Dir    string
	Client *http.Client // nil makes one
	// Secret, where it is not nil, stands for the files of secrets: nothing is read, as in a rehearsal.
	Secret func(kind, file string) strictyaml.Secret
}

type build struct {
	cfg    *route.Config
	dir    string
	client *http.Client
	invent func(kind, file string) strictyaml.Secret
}

// Build reads the secrets and makes one place for each way out, shared by the receivers that lead there. Every mistake
// is reported with its place in the file; none shows a secret.
func Build(cfg *route.Config, o Options) ([]respond.Place, error) {
	b := &build{cfg: cfg, dir: o.Dir, client: o.Client, invent: o.Secret}
	if d := cfg.Global.SecretsDir; d != "" {
		if b.dir = d; !filepath.IsAbs(d) {
			b.dir = filepath.Join(o.Dir, d)
		}
	}
	if b.client == nil {
		b.client = Client()
	}
	var out []respond.Place
	var errs strictyaml.Errors
	for _, r := range cfg.Receivers {
		for _, i := range r.Integrations {
			k := slices.IndexFunc(entries, func(e entry) bool { return e.kind.Key == i.Kind.Key })
			if k < 0 {
				errs.Add(i.Pos, fmt.Errorf("no receiver of kind %s is known", i.Kind.Name))
				continue
			}
			p, err := entries[k].build(b, i, r.Name.Value)
			if err != nil {
				errs.Add(i.Pos, err)
				continue
			}
			if at := slices.IndexFunc(out, func(o respond.Place) bool { return o.ID == p.ID }); at >= 0 {
				if !slices.Contains(out[at].Receivers, r.Name.Value) {
					out[at].Receivers = append(out[at].Receivers, r.Name.Value)
				}
				continue
			}
			p.Receivers, p.Kind, p.Pages = []string{r.Name.Value}, i.Kind.Name, i.Kind.Pages
			out = append(out, p)
		}
	}
	return out, errs.Err()
}

// Client is an HTTP client with bounds of its own, so that no provider can hold a connection for ever.
func Client() *http.Client {
	return &http.Client{
		Timeout: 15 * time.Second,
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: 12 * time.Second,
			MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
		},
		// A redirected page is not a delivered page, and would carry the secret elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (b *build) secret(kind string, inline strictyaml.Secret, file string) (strictyaml.Secret, error) {
	if b.invent != nil && file != "" {
		return b.invent(kind, file), nil
	}
	if file != "" && !filepath.IsAbs(file) {
		file = filepath.Join(b.dir, file)
	}
	return strictyaml.ResolveSecret(inline, file)
}

func buildPagerDuty(b *build, i route.Integration, _ string) (respond.Place, error) {
	c := *i.Config.(*pagerduty.Config)
	if c.URL == "" {
		c.URL = b.cfg.Global.PagerDutyURL
	}
	key, err := b.secret(i.Kind.Name, c.RoutingKey, c.RoutingKeyFile)
	if err != nil {
		return respond.Place{}, err
	}
	s, err := pagerduty.New(&c, key, b.cfg.Global.ExternalURL, b.client)
	// About 120 calls a minute are allowed.
	return respond.Place{ID: pagerduty.PlaceID(&c, key), Pace: 500 * time.Millisecond, Sender: s}, err
}

func buildSlack(b *build, i route.Integration, _ string) (respond.Place, error) {
	c := *i.Config.(*slack.Config)
	if c.APIURL == "" {
		c.APIURL = b.cfg.Global.SlackAPIURL
	}
	token, err := b.secret(i.Kind.Name, c.Token, c.TokenFile)
	if err != nil {
		return respond.Place{}, err
	}
	s, err := slack.New(&c, token, b.cfg.Global.ExternalURL, b.client)
	return respond.Place{ID: slack.PlaceID(&c), Edits: true, Notes: true, Pace: slack.Pace, Sender: s}, err
}

func buildWebhook(b *build, i route.Integration, receiver string) (respond.Place, error) {
	c := i.Config.(*webhook.Config)
	u, err := b.secret(i.Kind.Name, c.URL, c.URLFile)
	if err != nil {
		return respond.Place{}, err
	}
	s, err := webhook.New(c, u, receiver, b.cfg.Global.ExternalURL, b.client)
	return respond.Place{ID: webhook.PlaceID(u), Sender: s}, err
}
