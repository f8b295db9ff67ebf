package decode

import (
	"bytes"
	"fmt"

	"github.com/prometheus/common/model"

	"github.com/tocsin-project/tocsin/internal/signal"
)

// Limits of lists in one event, the first of which are kept.
const (
	maxAttributes = 32
	maxTags       = 64
)

// event bounds an event's texts, applies the pipeline, and hands it on.
func (d *jsonDecoder) event(e signal.Event) {
	switch e := e.(type) {
	case *signal.Request:
		if !d.request(e) {
			return
		}
	case *signal.Gauge:
		cutAll(maxName, &e.Resource, &e.Metric, &e.Unit)
		e.Attributes = d.attributes(e.Attributes)
	case *signal.Ticket:
		cutAll(maxName, &e.ID, &e.Account, &e.Area, &e.Service, &e.Language, &e.Source, &e.Severity, &e.Status)
		cutAll(maxURL, &e.URL)
		e.Tags = e.Tags[:min(len(e.Tags), maxTags)]
		for i := range e.Tags {
			cutAll(maxName, &e.Tags[i])
		}
	case *signal.Change:
		cutAll(maxName, &e.ID, &e.Target, &e.Actor)
		cutAll(maxTitle, &e.Title)
		cutAll(maxURL, &e.URL)
		e.Attributes = d.attributes(e.Attributes)
	case *signal.Alert:
		d.alert(e)
	}
	if d.bad == nil {
		d.emit(e)
	}
}

func cutAll(limit int, texts ...*string) {
	for _, t := range texts {
		*t = cut(*t, limit)
	}
}

// request maps a request, and tells whether it counts.
func (d *jsonDecoder) request(r *signal.Request) bool {
	if r.Count > maxCount {
		d.bad = fmt.Errorf("count: must be at most %d, not %d", int64(maxCount), r.Count)
		return true
	}
	cutAll(maxName, &r.Path.Service, &r.Status, &r.Error, &r.Account, &r.TraceID)
	cutAll(maxOper, &r.Path.Operation)
	c := call{service: r.Path.Service, name: r.Path.Operation}
	c.method, _ = splitMethod(c.name)
	named := d.names.of(c)
	r.Path.Operation = named.operation
	// An event without access is judged by its operation's first word.
	if named.routed || !bytes.Contains(d.raw, []byte(`"access"`)) {
		r.Path.Access = named.access
	}
	r.Attributes = d.attributes(r.Attributes)
	d.number++
	return d.keeper.none() || d.keeper.keep(r, mix(uint64(d.offset))+d.number)
}

func (d *jsonDecoder) alert(a *signal.Alert) {
	cutAll(maxName, &a.Fingerprint, &a.Receiver)
	cutAll(maxURL, &a.GeneratorURL)
	if a.Fingerprint == "" {
		// As Alertmanager would, so that an alert is the same whoever sent it.
		set := model.LabelSet{}
		for name, v := range a.Labels.All() {
			set[model.LabelName(name)] = model.LabelValue(v)
		}
		a.Fingerprint = set.Fingerprint().String()
	}
	a.Labels, a.Annotations = bounded(a.Labels, nil, maxName), bounded(a.Annotations, nil, maxTitle)
}

// attributes keeps those that the pipeline names, under its names.
func (d *jsonDecoder) attributes(a signal.Attributes) signal.Attributes {
	if a == "" {
		return ""
	}
	if known, ok := d.sets[a]; ok {
		return known
	}
	if len(d.sets) >= maxInterned {
		clear(d.sets)
	}
	kept := bounded(a, d.keep, maxName)
	d.sets[a] = kept
	return kept
}

func bounded(a signal.Attributes, keep map[string]string, limit int) signal.Attributes {
	var pairs []signal.Attr
	for name, v := range a.All() {
		if keep != nil {
			var ok bool
			if name, ok = keep[name]; !ok {
				continue
			}
		}
		if len(pairs) < maxAttributes {
			pairs = append(pairs, signal.Attr{Name: cut(name, maxName), Value: cut(v, limit)})
		}
	}
	return signal.AttributesOf(pairs...)
}
