package door

import (
	"net"
	"time"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Config is the `door` section. Without pipelines there is no door.
type Config struct {
	// Pipelines are what may be sent to, each with how its senders prove who they are: see Ingest over HTTP.
	Pipelines []Sender `yaml:"pipelines"`
	// Listen is an address of the door's own, host:port, for senders who must not reach the console. Without it the door is
	// served beside the console.
	Listen string `yaml:"listen"`
	// Alerts names the one of them that POST /api/v2/alerts feeds.
	Alerts string `yaml:"alerts"`
	// ConcurrentMax bounds the requests that are served at a time; further ones are answered 429.
	ConcurrentMax int `yaml:"concurrent_max"`
	// Timeout bounds one request, until Kafka has the record. Most senders give up after 5 s.
	Timeout strictyaml.Duration `yaml:"timeout"`

	Pos strictyaml.Pos `yaml:"-"`
}

// SetDefaults holds what a configuration means that leaves a key out.
func (c *Config) SetDefaults() {
	c.ConcurrentMax, c.Timeout = 64, strictyaml.Duration(4500*time.Millisecond)
}

// Sender opens one pipeline. One of the proofs is needed; where both are given, either will do.
type Sender struct {
	Pipeline string `yaml:"pipeline" strict:"required"`
	// TokenFiles hold bearer tokens, one a line, read for each request, so that a token can be changed without a restart.
	TokenFiles []string `yaml:"token_files"`
	// Signature is the provider whose signature is checked: github, pagerduty, zendesk or intercom.
	Signature Scheme `yaml:"signature"`
	// SecretFiles hold the secrets that the provider signs with, one a line; several while they change.
	SecretFiles []string `yaml:"secret_files"`
	// Open lets anybody in who reaches the address.
	Open bool `yaml:"open"`

	Pos strictyaml.Pos `yaml:"-"`
}

// Validate reports every mistake with its place. It reads no file.
func (c *Config) Validate() error {
	var errs strictyaml.Errors
	seen := map[string]bool{}
	for _, s := range c.Pipelines {
		proofs := len(s.TokenFiles) > 0 || s.Signature != ""
		switch {
		case seen[s.Pipeline]:
			errs = append(errs, s.Pos.Errorf("pipeline %q is listed twice", s.Pipeline))
		case s.Open && proofs:
			errs = append(errs, s.Pos.Errorf("pipeline %q is open, and asks for proof", s.Pipeline))
		case !s.Open && !proofs:
			errs = append(errs, s.Pos.Errorf("pipeline %q: nothing says who may send", s.Pipeline).WithHint("give token_files, signature with secret_files, or open: true"))
		case (s.Signature != "") != (len(s.SecretFiles) > 0):
			errs = append(errs, s.Pos.Errorf("pipeline %q: signature and secret_files belong together", s.Pipeline))
		}
		seen[s.Pipeline] = true
	}
	if c.Alerts != "" && !seen[c.Alerts] {
		errs = append(errs, c.Pos.Errorf("door: alerts names %q, which is not among its pipelines", c.Alerts))
	}
	if _, _, err := net.SplitHostPort(c.Listen); c.Listen != "" && err != nil {
		errs = append(errs, c.Pos.Errorf("door: listen %q is not host:port", c.Listen))
	}
	if c.ConcurrentMax < 1 || c.Timeout <= 0 {
		errs = append(errs, c.Pos.Errorf("door: concurrent_max and timeout must be above 0"))
	}
	return errs.Err()
}
