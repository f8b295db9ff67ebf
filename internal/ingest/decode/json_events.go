package decode

import (
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

type requestJSON struct {
	Type       string            `json:"type"`
	Time       *scalar           `json:"time"`
	Service    string            `json:"service"`
	Operation  string            `json:"operation"`
	Access     string            `json:"access"`
	Outcome    string            `json:"outcome"`
	Count      *uint64           `json:"count"`
	Status     scalar            `json:"status"`
	Error      string            `json:"error"`
	LatencyMS  *float64          `json:"latency_ms"`
	Account    string            `json:"account"`
	Attempt    *uint32           `json:"attempt"`
	Attributes map[string]scalar `json:"attributes"`
	TraceID    string            `json:"trace_id"`
}

const maxLatencyMS = 7 * 24 * 3600 * 1000

func (d *jsonDecoder) requestEvent(raw []byte, _ *ingest.Record, emit func(signal.Event)) error {
	e, err := unmarshal[requestJSON](raw)
	if err != nil {
		return err
	}
	if err := d.checkType(e.Type); err != nil {
		return err
	}
	at, err := eventTime("time", e.Time)
	if err != nil {
		return err
	}
	if err := required("service", e.Service, "operation", e.Operation, "outcome", e.Outcome); err != nil {
		return err
	}
	r := &signal.Request{Time: at, Count: 1, Attempt: 1, Latency: -1, Status: cut(e.Status.text, maxName), Error: cut(e.Error, maxName),
		Account: cut(e.Account, maxName), TraceID: cut(e.TraceID, maxName)}
	if r.Outcome, err = signal.ParseOutcome(e.Outcome); err != nil {
		return invalid("%v", err)
	}
	c := call{service: cut(e.Service, maxName), name: cut(e.Operation, maxOper)}
	c.method, _ = splitMethod(c.name)
	named := d.names.of(c)
	r.Path = signal.Path{Service: c.service, Operation: named.operation, Access: named.access}
	if e.Access != "" {
		if r.Path.Access, err = signal.ParseAccess(e.Access); err != nil {
			return invalid("%v", err)
		}
	}
	if e.Count != nil {
		if r.Count = *e.Count; r.Count < 1 || r.Count > maxCount {
			return invalid("count must be between 1 and %d, not %d", int64(maxCount), r.Count)
		}
	}
	if e.Attempt != nil {
		if r.Attempt = *e.Attempt; r.Attempt < 1 {
			return invalid("attempt must be at least 1")
		}
	}
	if e.LatencyMS != nil {
		ms, err := number("latency_ms", e.LatencyMS, 0, maxLatencyMS)
		if err != nil {
			return err
		}
		r.Latency = time.Duration(ms * float64(time.Millisecond))
	}
	if r.Attributes, err = d.attributes(e.Attributes); err != nil {
		return err
	}
	emit(r)
	return nil
}

type gaugeJSON struct {
	Type       string            `json:"type"`
	Time       *scalar           `json:"time"`
	Resource   string            `json:"resource"`
	Metric     string            `json:"metric"`
	Value      *float64          `json:"value"`
	Limit      *float64          `json:"limit"`
	Unit       string            `json:"unit"`
	Attributes map[string]scalar `json:"attributes"`
}

func (d *jsonDecoder) gaugeEvent(raw []byte, _ *ingest.Record, emit func(signal.Event)) error {
	e, err := unmarshal[gaugeJSON](raw)
	if err != nil {
		return err
	}
	if err := d.checkType(e.Type); err != nil {
		return err
	}
	at, err := eventTime("time", e.Time)
	if err != nil {
		return err
	}
	if err := required("resource", e.Resource, "metric", e.Metric); err != nil {
		return err
	}
	if e.Value == nil {
		return missing("value")
	}
	g := &signal.Gauge{Time: at, Resource: cut(e.Resource, maxName), Metric: cut(e.Metric, maxName), Value: *e.Value, Unit: cut(e.Unit, maxName)}
	if g.Limit, err = number("limit", e.Limit, 0, 1e300); err != nil {
		return err
	}
	if g.Attributes, err = d.attributes(e.Attributes); err != nil {
		return err
	}
	emit(g)
	return nil
}

type ticketJSON struct {
	Type     string   `json:"type"`
	Time     *scalar  `json:"time"`
	ID       scalar   `json:"id"`
	Subject  string   `json:"subject"`
	Text     string   `json:"text"`
	Account  string   `json:"account"`
	Area     string   `json:"area"`
	Service  string   `json:"service"`
	Language string   `json:"language"`
	Source   string   `json:"source"`
	Tags     []string `json:"tags"`
	Severity string   `json:"severity"`
	URL      string   `json:"url"`
	Status   string   `json:"status"`
}

const maxTags = 64

func (d *jsonDecoder) ticketEvent(raw []byte, _ *ingest.Record, emit func(signal.Event)) error {
	e, err := unmarshal[ticketJSON](raw)
	if err != nil {
		return err
	}
	if err := d.checkType(e.Type); err != nil {
		return err
	}
	at, err := eventTime("time", e.Time)
	if err != nil {
		return err
	}
	if err := required("id", e.ID.text, "text or subject", e.Text+e.Subject); err != nil {
		return err
	}
	t := &signal.Ticket{Time: at, ID: cut(e.ID.text, maxName), Subject: e.Subject, Text: e.Text, Account: cut(e.Account, maxName),
		Area: cut(e.Area, maxName), Service: cut(e.Service, maxName), Language: cut(e.Language, maxName), Source: cut(e.Source, maxName),
		Severity: cut(e.Severity, maxName), URL: cut(e.URL, maxURL), Status: cut(e.Status, maxName)}
	for _, tag := range e.Tags[:min(len(e.Tags), maxTags)] {
		t.Tags = append(t.Tags, cut(tag, maxName))
	}
	emit(t)
	return nil
}

type changeJSON struct {
	Type       string            `json:"type"`
	Time       *scalar           `json:"time"`
	ID         scalar            `json:"id"`
	Kind       string            `json:"kind"`
	Phase      string            `json:"phase"`
	Target     string            `json:"target"`
	Title      string            `json:"title"`
	Actor      string            `json:"actor"`
	URL        string            `json:"url"`
	Dose       *float64          `json:"dose"`
	Attributes map[string]scalar `json:"attributes"`
}

func (d *jsonDecoder) changeEvent(raw []byte, _ *ingest.Record, emit func(signal.Event)) error {
	e, err := unmarshal[changeJSON](raw)
	if err != nil {
		return err
	}
	if err := d.checkType(e.Type); err != nil {
		return err
	}
	at, err := eventTime("time", e.Time)
	if err != nil {
		return err
	}
	if err := required("id", e.ID.text, "kind", e.Kind, "phase", e.Phase); err != nil {
		return err
	}
	c := &signal.Change{Time: at, ID: cut(e.ID.text, maxName), Kind: signal.ChangeKind(e.Kind), Phase: signal.Phase(e.Phase), Target: cut(e.Target, maxName),
		Title: cut(e.Title, maxTitle), Actor: cut(e.Actor, maxName), URL: cut(e.URL, maxURL)}
	if !slices.Contains(signal.ChangeKinds, c.Kind) {
		return invalid("kind %q is none of %v", cut(e.Kind, 40), signal.ChangeKinds)
	}
	if c.Phase != signal.Started && c.Phase != signal.Finished && c.Phase != signal.Aborted {
		return invalid("phase %q is none of started, finished, aborted", cut(e.Phase, 40))
	}
	if c.Dose, err = number("dose", e.Dose, 0, 1); err != nil {
		return err
	}
	if c.Attributes, err = d.attributes(e.Attributes); err != nil {
		return err
	}
	emit(c)
	return nil
}
