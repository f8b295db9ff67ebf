package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Limits of one file. They keep a batch's rows, and the work for each record, bounded.
const (
	MaxRecordLimit = Size(16 << 20)
	MaxAttributes  = 16
	maxRules       = 1000
	maxLimit       = 100_000
)

// Parse reads one file. file is its name in messages.
func Parse(file string, data []byte) (*Pipeline, error) {
	p := &Pipeline{}
	if err := strictyaml.Decode(file, data, p); err != nil {
		return nil, err
	}
	p.File = file
	sum := sha256.Sum256(data)
	p.Revision = hex.EncodeToString(sum[:6])
	if d, ok := DecoderByName(p.Decoder); ok && d.Spans {
		p.Requests.setSpanDefaults()
	} else if ok && len(d.Resource) > 0 {
		p.setMetricDefaults(d)
	}
	if err := p.lint(); err != nil {
		return nil, err
	}
	return p, nil
}

// Set is all pipelines of an installation.
type Set struct {
	Pipelines []*Pipeline // by name
	byTopic   map[string]*Pipeline
}

// Load reads all *.yaml of a folder but the tests beside them. All mistakes of all files are reported.
func Load(fsys fs.FS) (*Set, error) {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list pipelines: %w", err)
	}
	var all []*Pipeline
	var errs strictyaml.Errors
	for _, name := range names {
		if IsTest(name) {
			continue
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read pipeline: %w", err)
		}
		p, err := Parse(name, data)
		if err != nil {
			errs.Add(strictyaml.Pos{File: name}, err)
			continue
		}
		all = append(all, p)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return NewSet(all)
}

// IsTest tells the files of tests from those of pipelines.
func IsTest(name string) bool { return strings.HasSuffix(path.Base(name), "_test.yaml") }

// NewSet puts pipelines together and refuses two of one name or topic: each record is read once.
func NewSet(all []*Pipeline) (*Set, error) {
	s := &Set{Pipelines: slices.Clone(all), byTopic: map[string]*Pipeline{}}
	slices.SortFunc(s.Pipelines, func(a, b *Pipeline) int { return strings.Compare(a.Name, b.Name) })
	names := map[string]*Pipeline{}
	var errs strictyaml.Errors
	for _, p := range s.Pipelines {
		if other, dup := names[p.Name]; dup {
			errs = append(errs, p.Places.Of("name").Errorf("there is another pipeline %q in %s", p.Name, other.File))
		}
		names[p.Name] = p
		for _, t := range p.AllTopics() {
			if other, dup := s.byTopic[t]; dup {
				errs = append(errs, p.Places.Of("topic").Errorf("topic %q is read by pipeline %q in %s already", t, other.Name, other.File))
			}
			s.byTopic[t] = p
		}
	}
	return s, errs.Err()
}

// ByTopic finds the pipeline that reads a topic, or nil.
func (s *Set) ByTopic(topic string) *Pipeline { return s.byTopic[topic] }

// Topics are all topics read, sorted.
func (s *Set) Topics() []string { return slices.Sorted(maps.Keys(s.byTopic)) }

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

func (p *Pipeline) lint() error {
	var errs strictyaml.Errors
	bad := func(key, format string, args ...any) {
		errs = append(errs, p.Places.Of(key).Errorf(format, args...))
	}
	topics := p.AllTopics()
	if len(topics) == 0 {
		bad("", `"topic" is required`)
	}
	for _, t := range topics {
		if !topicName.MatchString(t) {
			bad("topic", "%q is not a topic's name", t)
		}
	}
	d, known := DecoderByName(p.Decoder)
	switch {
	case !isKnownStream(p.Stream):
		errs = append(errs, p.Places.Of("stream").Errorf("unknown stream %q", p.Stream).WithHint("known: %s", words(signal.Streams)))
	case !known:
		names := make([]string, len(Decoders))
		for i, d := range Decoders {
			names[i] = d.Name
		}
		errs = append(errs, p.Places.Of("decoder").Errorf("unknown decoder %q", p.Decoder).WithHint("known: %s", strings.Join(names, ", ")))
	case !slices.Contains(d.Streams, p.Stream):
		bad("decoder", "decoder %q gives no %s", p.Decoder, p.Stream)
	}
	if p.MaxRecord < 1 || p.MaxRecord > MaxRecordLimit {
		bad("max_record", "max_record must be between 1B and %s", MaxRecordLimit)
	}
	if len(p.Requests.Attributes) > MaxAttributes {
		bad("attributes", "%d attributes, %d at most are kept: every combination of their values is a row", len(p.Requests.Attributes), MaxAttributes)
	}
	if n := len(p.Requests.Routes) + len(p.Requests.Outcomes) + len(p.Requests.Drop) + len(p.Requests.Sample); n > maxRules {
		bad("routes", "%d rules, %d at most", n, maxRules)
	}
	errs = append(errs, p.lintMeaning(d)...)
	return errs.Err()
}

func (p *Pipeline) lintMeaning(d DecoderInfo) (errs strictyaml.Errors) {
	for _, key := range []string{"service", "operation", "account", "kinds", "outcomes"} {
		if pos, given := p.Places[key]; given && !d.requestKeys(p.Stream) {
			errs = append(errs, pos.Errorf("%q means nothing to decoder %q", key, p.Decoder).WithHint("native events say it themselves"))
		}
	}
	for _, key := range []string{"metrics", "resource"} {
		if pos, given := p.Places[key]; given && len(d.Resource) == 0 {
			errs = append(errs, pos.Errorf("%q means nothing to decoder %q", key, p.Decoder).WithHint("it is for decoders of metrics"))
		}
	}
	for _, key := range []string{"routes", "collapse_ids", "limits", "drop", "sample"} {
		if pos, given := p.Places[key]; given && p.Stream != signal.Requests {
			errs = append(errs, pos.Errorf("%s have no %s", p.Stream, key).WithHint("it is for requests"))
		}
	}
	if pos, given := p.Places["sample"]; given && len(d.Resource) > 0 && p.Stream == signal.Requests {
		errs = append(errs, pos.Errorf("what is counted already cannot be sampled").WithHint("it is for spans and events"))
	}
	if l := &p.Requests.Limits; l.Values < 0 || l.Operations < 0 || l.Values > maxLimit || l.Operations > maxLimit {
		errs = append(errs, p.Places.Of("limits").Errorf("limits must be between 0, which is none, and %d", maxLimit))
	}
	errs = append(errs, p.lintSelection()...)
	for _, r := range p.Requests.Routes {
		if r.Operation == "" && r.Access == nil {
			errs = append(errs, r.Places.Of("").Errorf("the route changes nothing").WithHint("give operation or access"))
		}
	}
	for _, o := range p.Requests.Outcomes {
		if o.Service.IsZero() && o.Operation.IsZero() && o.Status.IsZero() && o.Error.IsZero() {
			errs = append(errs, o.Places.Of("").Errorf("the rule matches every request").WithHint("give service, operation, status or error"))
		}
	}
	for _, m := range p.Mask.Patterns {
		re, err := regexp.Compile(m.Regexp)
		switch {
		case err != nil:
			errs = append(errs, m.Places.Of("regexp").Errorf("%v", err))
		case re.MatchString(""):
			errs = append(errs, m.Places.Of("regexp").Errorf("the pattern matches the empty text"))
		}
	}
	return errs
}

func words[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}
