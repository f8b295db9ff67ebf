package scenario

import (
	"math"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// worldFile is what a day looks like when nothing goes wrong. Several scenarios may share one.
type worldFile struct {
	Scale      float64                       `yaml:"scale"`      // of all rates, 1 if left out
	Attributes map[string]map[string]float64 `yaml:"attributes"` // name → value → share
	Accounts   accountsFile                  `yaml:"accounts" strict:"required"`
	Daily      dailyFile                     `yaml:"daily" strict:"required"`
	Noise      noiseFile                     `yaml:"noise"`
	Defaults   mix                           `yaml:"defaults" strict:"required"`
	Services   map[string]*serviceFile       `yaml:"services" strict:"required"`
	Resources  map[string][]gaugeFile        `yaml:"resources"`
}

// SetDefaults takes the rates as they are written.
func (w *worldFile) SetDefaults() { w.Scale = 1 }

// accountsFile is the customers: the one of rank r sends traffic in proportion to (r + offset) ^ -exponent.
type accountsFile struct {
	Count    int     `yaml:"count" strict:"required"`
	Exponent float64 `yaml:"exponent" strict:"required"`
	Offset   float64 `yaml:"offset"`
	Prefix   string  `yaml:"prefix"`
}

// dailyFile is a cosine over the day: at the peak 1 + amplitude times the mean.
type dailyFile struct {
	Peak      Clock   `yaml:"peak" strict:"required"`
	Amplitude float64 `yaml:"amplitude"`
}

// at is the daily swing, -1 to 1, at a time since midnight.
func (d dailyFile) at(c time.Duration) float64 {
	return math.Cos(2 * math.Pi * (c - time.Duration(d.Peak)).Hours() / 24)
}

// noiseFile is how far traffic and failure rates wander beyond chance, as standard deviations of their logarithms.
type noiseFile struct {
	Traffic  float64 `yaml:"traffic"`
	Failures float64 `yaml:"failures"`
}

// mix is how requests end and how long they take.
type mix struct {
	Failure   float64 `yaml:"failure"`
	Rejected  float64 `yaml:"rejected"`
	Throttled float64 `yaml:"throttled"`
	Latency   Dur     `yaml:"latency"` // the median
	Spread    float64 `yaml:"spread"`  // standard deviation of the logarithm
	Anonymous float64 `yaml:"anonymous"`
}

type serviceFile struct {
	Attributes map[string]map[string]float64 `yaml:"attributes"` // instead of the world's
	Operations []operationFile               `yaml:"operations" strict:"required"`
	Pos        strictyaml.Pos                `yaml:"-"`
}

// operationFile is one path's usual traffic. What is left out is the world's default.
type operationFile struct {
	Route     string         `yaml:"route"` // an HTTP route, or
	RPC       string         `yaml:"rpc"`   // a gRPC method
	Method    string         `yaml:"method"`
	Access    signal.Access  `yaml:"access" strict:"required"`
	Rate      float64        `yaml:"rate" strict:"required"` // requests a second, the day's mean
	Failure   *float64       `yaml:"failure"`
	Rejected  *float64       `yaml:"rejected"`
	Throttled *float64       `yaml:"throttled"`
	Latency   *Dur           `yaml:"latency"`
	Spread    *float64       `yaml:"spread"`
	Anonymous *float64       `yaml:"anonymous"`
	Retry     *retryFile     `yaml:"retry"`
	Pos       strictyaml.Pos `yaml:"-"`
}

// retryFile is what callers do after a failure: send the request again, up to so many attempts in all.
type retryFile struct {
	Attempts uint32 `yaml:"attempts" strict:"required"`
	Backoff  Dur    `yaml:"backoff" strict:"required"`
}

func (o *operationFile) name() string {
	if o.RPC != "" {
		return o.RPC
	}
	return o.Route
}

func (o *operationFile) mix(d mix) mix {
	set(&d.Failure, o.Failure)
	set(&d.Rejected, o.Rejected)
	set(&d.Throttled, o.Throttled)
	set(&d.Latency, o.Latency)
	set(&d.Spread, o.Spread)
	set(&d.Anonymous, o.Anonymous)
	return d
}

// set replaces a value by a given one.
func set[T any](to *T, given *T) {
	if given != nil {
		*to = *given
	}
}

// gaugeFile is one metric of a resource on a usual day.
type gaugeFile struct {
	Metric string         `yaml:"metric" strict:"required"`
	Unit   string         `yaml:"unit"`
	Limit  float64        `yaml:"limit"`
	Base   float64        `yaml:"base"`
	Daily  float64        `yaml:"daily"`  // swing over the day, as a part of the base
	Noise  float64        `yaml:"noise"`  // standard deviation, as a part of the base
	Digits int            `yaml:"digits"` // after the point
	Every  Dur            `yaml:"every"`
	Pos    strictyaml.Pos `yaml:"-"`
}

// SetDefaults gives a gauge the period that most exporters have here.
func (g *gaugeFile) SetDefaults() { g.Every = Dur(10 * time.Second) }

// ticketsFile is what customers write, by product area.
type ticketsFile struct {
	Typos float64              `yaml:"typos"` // share of texts with a slip in them
	Repos []string             `yaml:"repositories" strict:"required"`
	Areas map[string]ticketSet `yaml:"areas" strict:"required"`
}

type ticketSet struct {
	PerHour float64      `yaml:"per_hour"` // on a usual day
	Usual   []ticketText `yaml:"usual" strict:"required"`
	Trouble []ticketText `yaml:"trouble" strict:"required"` // while something of the area is broken
}

type ticketText struct {
	Subject  string `yaml:"subject"`
	Text     string `yaml:"text" strict:"required"`
	Language string `yaml:"language"`
}

// SetDefaults makes English the language of texts that name none.
func (t *ticketText) SetDefaults() { t.Language = "en" }

// catalogueFile is the part of a catalogue that decides who depends on whom.
type catalogueFile struct {
	Areas     []named            `yaml:"areas"`
	Services  []catalogueService `yaml:"services"`
	Resources []catalogueService `yaml:"resources"`
}

type named struct {
	Name    string         `yaml:"name" strict:"required"`
	Further map[string]any `yaml:",inline"`
}

type catalogueService struct {
	Name      string         `yaml:"name" strict:"required"`
	Area      string         `yaml:"area"`
	DependsOn []string       `yaml:"depends_on"`
	UsedBy    []string       `yaml:"used_by"`
	Further   map[string]any `yaml:",inline"`
	Pos       strictyaml.Pos `yaml:"-"`
}
