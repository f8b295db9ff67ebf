package pipeline

import (
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// SetDefaults is what holds for keys that a file leaves out. What depends on the decoder is set after reading.
func (p *Pipeline) SetDefaults() {
	p.MaxAge = strictyaml.Duration(7 * 24 * time.Hour)
	p.MaxAhead = strictyaml.Duration(5 * time.Minute)
	p.MaxRecord = 1 << 20
	p.Requests.Reads.SetDefaults()
	p.Requests.CollapseIDs = true
	p.Requests.Limits.SetDefaults()
}

// SetDefaults are far above what services have, and far below what ids would make of them.
func (l *Limits) SetDefaults() { l.Values, l.Operations = 500, 2000 }

// SetDefaults are the methods that HTTP calls safe, and the verbs that reads begin with in RPC interfaces.
func (r *Reads) SetDefaults() {
	r.Methods = []string{"GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND"}
	r.Verbs = []string{"Get", "List", "Watch", "Search", "Query", "BatchGet"}
}

// setSpanDefaults is OpenTelemetry's vocabulary, today's names before those of earlier conventions.
func (r *Requests) setSpanDefaults() {
	fill(&r.Service, "service.name")
	fill(&r.Operation, "http.route", "rpc.method", "span.name")
	fill(&r.Account, "tocsin.account", "account.id", "tenant.id", "organization.id", "customer.id", "enduser.id")
	if len(r.Kinds) == 0 {
		r.Kinds = []SpanKind{KindServer, KindConsumer}
	}
	if r.Attributes == nil {
		r.Attributes = map[string][]string{
			"region":      {"cloud.region"},
			"site":        {"tocsin.site", "site", "cloud.availability_zone"},
			"model":       {"gen_ai.request.model"},
			"environment": {"deployment.environment.name", "deployment.environment"},
			"version":     {"service.version"},
		}
	}
	for name, from := range r.Attributes {
		if len(from) == 0 {
			r.Attributes[name] = []string{name}
		}
	}
}

// setScrapedDefaults are labels as exporters in Prometheus' format commonly name them.
func (r *Requests) setScrapedDefaults() {
	fill(&r.Service, "service", "service_name", "app", "job")
	fill(&r.Operation, "http_route", "route", "handler", "grpc_method", "rpc_method", "endpoint", "path", "uri")
	fill(&r.Account, "account", "tenant", "organization")
	if r.Attributes == nil {
		r.Attributes = map[string][]string{"region": {"region"}, "site": {"site", "zone"}, "environment": {"environment", "env"}, "version": {"version"}}
	}
}

// requestMetrics are the histograms of how long servers took, today's names and those of earlier conventions.
var requestMetrics = []string{"http.server.request.duration", "http.server.duration", "rpc.server.call.duration", "rpc.server.duration", "messaging.process.duration"}

// scrapedMetrics count each request once, with its status; what else there is differs from exporter to exporter.
var scrapedMetrics = []string{"http_server_request_duration_seconds", "grpc_server_handled_total"}

func (p *Pipeline) setMetricDefaults(d DecoderInfo) {
	fill(&p.Metrics.Resource, d.Resource...)
	if p.Stream != signal.Requests {
		return
	}
	if d.Scraped {
		p.Requests.setScrapedDefaults()
	}
	p.Requests.setSpanDefaults()
	names := requestMetrics
	if d.Scraped {
		names = scrapedMetrics
	}
	if len(p.Metrics.Names) == 0 {
		for _, name := range names {
			g, err := NewGlob(name)
			if err != nil {
				panic(err) // a name of our own
			}
			p.Metrics.Names = append(p.Metrics.Names, g)
		}
	}
}

func fill(list *[]string, names ...string) {
	if len(*list) == 0 {
		*list = names
	}
}

// isKnownStream keeps the list of streams in one place.
func isKnownStream(s signal.Stream) bool { return slices.Contains(signal.Streams, s) }
