package decode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/signal"
)

var cdeventsEntry = Entry{
	Name:    "cdevents",
	Summary: "CDEvents as changes, bare or in a CloudEvents envelope: services deployed, upgraded, rolled back, removed and published, pipeline runs, environments.",
	Example: `{"context":{"specversion":"0.5.0","id":"271069a8-fc18-44f1-b38f-9d70a1695819","source":"/deployer","type":"dev.cdevents.service.deployed.0.3.0","timestamp":"2026-09-13T08:27:05Z"},"subject":{"id":"checkout","source":"/cluster/a","content":{"environment":{"id":"production"},"artifactId":"pkg:oci/checkout@4.2.1"}}}`,
	New:     func(p *pipeline.Pipeline) ingest.Decoder { return foreign(p, one(parseCDEvents)) },
}

type cdevent struct {
	Context struct {
		Type      string `json:"type"`
		Source    string `json:"source"`
		Timestamp moment `json:"timestamp"`
	} `json:"context"`
	Subject struct {
		ID      string          `json:"id"`
		Source  string          `json:"source"`
		Content json.RawMessage `json:"content"`
	} `json:"subject"`
}

type cdeventContent struct {
	Environment struct {
		ID string `json:"id"`
	} `json:"environment"`
	ArtifactID   string `json:"artifactId"`
	Name         string `json:"name"`
	PipelineName string `json:"pipelineName"`
	URI          string `json:"uri"`
	Outcome      string `json:"outcome"`
}

const cdeventPrefix = "dev.cdevents."

// cdeventKinds says which events are changes. Those of source code, artefacts, builds and tests happen before anything
// reaches users; those of tickets and incidents are other streams' or other systems' conclusions.
var cdeventKinds = map[string]struct {
	kind  signal.ChangeKind
	phase signal.Phase
	title string
}{
	"service.deployed":     {signal.Deploy, signal.Finished, "deployed"},
	"service.upgraded":     {signal.Deploy, signal.Finished, "upgraded"},
	"service.published":    {signal.Deploy, signal.Finished, "published"},
	"service.rolledback":   {signal.Rollback, signal.Finished, "rolled back"},
	"service.removed":      {signal.Config, signal.Finished, "removed"},
	"environment.created":  {signal.Config, signal.Finished, "created"},
	"environment.modified": {signal.Config, signal.Finished, "modified"},
	"environment.deleted":  {signal.Config, signal.Finished, "deleted"},
	"pipelinerun.started":  {signal.Job, signal.Started, "started"},
	"pipelinerun.finished": {signal.Job, signal.Finished, "finished"},
}

func parseCDEvents(raw []byte, _ time.Time) (*signal.Change, error) {
	env, wrapped, err := unwrap(raw)
	if err != nil {
		return nil, err
	}
	if wrapped {
		if !strings.HasPrefix(env.Type, cdeventPrefix) {
			return nil, unsupported("a CloudEvent of the type %q is no CDEvent", cut(env.Type, 80))
		}
		raw = env.data
	}
	var e cdevent
	if err := fill(raw, &e); err != nil {
		return nil, err
	}
	name, ok := strings.CutPrefix(e.Context.Type, cdeventPrefix)
	switch {
	case e.Context.Type == "":
		return nil, missing("context.type")
	case !ok:
		return nil, unsupported("%q is no type of CDEvents", cut(e.Context.Type, 80))
	case e.Subject.ID == "":
		return nil, missing("subject.id")
	}
	subject, rest, _ := strings.Cut(name, ".")
	predicate, _, _ := strings.Cut(rest, ".") // the version follows
	k, ok := cdeventKinds[subject+"."+predicate]
	switch {
	case subject == "ticket":
		return nil, unsupported("%s.%s belongs into a pipeline of tickets", subject, cut(predicate, 40))
	case !ok:
		return nil, unsupported("%s.%s is no change of what users meet", cut(subject, 40), cut(predicate, 40))
	}
	var content cdeventContent
	if isObject(e.Subject.Content) {
		if err := fill(e.Subject.Content, &content); err != nil {
			return nil, err
		}
	}
	c := &signal.Change{
		Time: firstTime(e.Context.Timestamp.Time, env.Time.Time), Kind: k.kind, Phase: k.phase, Target: e.Subject.ID, URL: content.URI,
		Title:      subject + " " + cmp.Or(content.Name, content.PipelineName, e.Subject.ID) + " " + k.title,
		Attributes: signal.AttributesOf(signal.Attr{Name: "environment", Value: content.Environment.ID}, signal.Attr{Name: "version", Value: artifactVersion(content.ArtifactID)}),
	}
	if c.Time.IsZero() {
		return nil, missing("context.timestamp")
	}
	source := cmp.Or(e.Subject.Source, e.Context.Source)
	if subject == "pipelinerun" {
		// The subject is the run: its start and its end belong together.
		c.ID, c.Target = "cdevents/"+source+"/"+e.Subject.ID, content.PipelineName
		c.Kind = kindByWords(content.PipelineName, signal.Job)
		if content.Outcome != "" && content.Outcome != "success" {
			c.Phase, c.Title = signal.Aborted, c.Title+" ("+cut(content.Outcome, 40)+")"
		}
		return c, nil
	}
	// The subject is the service, and a retried delivery may carry another id: the same happening is what says the same.
	var compact bytes.Buffer
	_ = json.Compact(&compact, e.Subject.Content) // it was read above
	c.ID = "cdevents/" + fingerprint(subject, predicate, source, e.Subject.ID, compact.String(), c.Time.Format(time.RFC3339Nano))
	return c, nil
}

// artifactVersion is the version in a package URL: pkg:oci/checkout@sha256%3A0b31….
func artifactVersion(purl string) string {
	_, version, _ := strings.Cut(purl, "@")
	version, _, _ = strings.Cut(version, "?")
	version, _, _ = strings.Cut(version, "#")
	if plain, err := url.PathUnescape(version); err == nil {
		version = plain
	}
	if digest, ok := strings.CutPrefix(version, "sha256:"); ok && len(digest) == 64 {
		return "sha256:" + digest[:12]
	}
	return version
}
