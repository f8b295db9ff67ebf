package detect

import (
	"context"
	"errors"
	"fmt"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
)

// What a revision may be of.
const (
	SourceRules     = "rules"
	SourceCatalogue = "catalogue"
)

// Source is the text behind a revision that ticks name: with it a tick can be evaluated again as it was.
type Source struct {
	Kind     string // SourceRules or SourceCatalogue
	Revision string
	Files    map[string]string // by name
}

// catalogueFile is the name under which the one file of a catalogue is kept.
const catalogueFile = "catalogue.yaml"

// sources are the texts of a configuration. What was made without files, as in tests, has none.
func (c *Config) sources() (out []Source) {
	if len(c.Rules.Files) > 0 {
		out = append(out, Source{SourceRules, c.Rules.Revision, c.Rules.Files})
	}
	if text := c.Catalogue.Text(); text != "" {
		out = append(out, Source{SourceCatalogue, c.Catalogue.Revision, map[string]string{catalogueFile: text}})
	}
	return out
}

// keep stores the texts of a configuration before the first tick that names it.
func (l *Loop) keep(ctx context.Context, c *Config) error {
	for _, s := range c.sources() {
		id := s.Kind + "/" + s.Revision
		if l.kept[id] {
			continue
		}
		if err := l.timeline.KeepSource(ctx, s); err != nil {
			return err
		}
		l.kept[id] = true
	}
	return nil
}

// ErrNoAnswer says that the store of texts did not answer, so that nobody knows whether it has them.
var ErrNoAnswer = errors.New("the store of rules and catalogues does not answer")

// SourceStore gives texts by their revision; a Timeline is one.
type SourceStore interface {
	// Source reads one; ok is false where there is none of this revision.
	Source(ctx context.Context, kind, revision string) (s Source, ok bool, err error)
}

// ConfigOf is the configuration that a tick was evaluated with. Parts whose text is not stored are those of usual, and ok is
// false then.
func ConfigOf(ctx context.Context, store SourceStore, rules, cat string, usual Config) (c Config, ok bool, err error) {
	c, ok = usual, true
	if c.Rules.Revision != rules {
		s, found, err := store.Source(ctx, SourceRules, rules)
		if err != nil {
			return c, false, fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		if ok = found; found {
			if c.Rules, err = rule.FromFiles(s.Files); err != nil {
				return c, false, fmt.Errorf("rules of revision %s: %w", rules, err)
			}
		}
	}
	if c.Catalogue.Revision != cat {
		s, found, err := store.Source(ctx, SourceCatalogue, cat)
		if err != nil {
			return c, false, fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		if cat == catalogue.Empty().Revision {
			found, c.Catalogue = true, catalogue.Empty()
		} else if found {
			if c.Catalogue, err = catalogue.Parse(catalogueFile, []byte(s.Files[catalogueFile])); err != nil {
				return c, false, fmt.Errorf("catalogue of revision %s: %w", cat, err)
			}
		}
		ok = ok && found
	}
	return c, ok, nil
}

// configure brings a detector to the configuration that a tick names.
func (l *Loop) configure(ctx context.Context, d *Detector, t *Tick) (*Detector, error) {
	fresh, ok, err := d.Configured(ctx, l.timeline, t, *l.wanted())
	if errors.Is(err, ErrNoAnswer) {
		return d, err // that it cannot be read now is no reason to judge by other rules than were in force
	}
	if !ok && ctx.Err() == nil {
		// Mostly it is from before texts were kept, or of another version: the tick is evaluated with what there is.
		l.cfg.Logger.Warn("the configuration of a stored tick cannot be used", "tick", t.Number, "rules", t.Rules, "catalogue", t.Catalogue, "err", err)
		return d, nil
	}
	return fresh, err
}

// Configured gives a detector that goes on with the configuration that a tick names: this one where it is the same, a
// reloaded one otherwise. ok is false, and the detector this one, where the configuration cannot be had. Whoever replays
// stored ticks calls it before each.
func (d *Detector) Configured(ctx context.Context, store SourceStore, t *Tick, usual Config) (fresh *Detector, ok bool, err error) {
	if d.cfg.sameRevisions(t) || t.From.Equal(t.To) && d.at != 0 {
		return d, true, nil // a tick without steps carries commands alone
	}
	usual.setDefaults()
	c, ok, err := ConfigOf(ctx, store, t.Rules, t.Catalogue, usual)
	if err != nil || !ok {
		return d, false, err
	}
	fresh, err = d.Reload(c)
	return fresh, true, err
}

// Reload hands over other rules and another catalogue. They enter with the next tick that moves on, which names them. It may
// be called from any goroutine; the last call counts.
func (l *Loop) Reload(c Config) {
	c.setDefaults()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = &c
}

// wanted is the configuration of ticks to come.
func (l *Loop) wanted() *Config {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// restored makes a detector of a checkpoint, with the configuration that it was made with.
func (l *Loop) restored(ctx context.Context, checkpoint []byte) (*Detector, error) {
	return Restored(ctx, l.timeline, checkpoint, *l.wanted())
}

// Restored makes a detector of a checkpoint, with the configuration that it was made with, or with the usual one where that
// is not stored.
func Restored(ctx context.Context, store SourceStore, checkpoint []byte, usual Config) (*Detector, error) {
	s, err := readState(checkpoint)
	if err != nil {
		return nil, err
	}
	usual.setDefaults()
	c := usual
	if s.Rules != "" || s.Catalogue != "" {
		own, ok, err := ConfigOf(ctx, store, s.Rules, s.Catalogue, usual)
		if errors.Is(err, ErrNoAnswer) {
			return nil, err
		}
		if err == nil && ok {
			c = own
		}
	}
	d := New(c)
	return d, d.restore(s)
}

// replayed notes for each finding the first change that a replay came to.
type replayed map[incident.FindingKey]incident.Transition

func (r replayed) add(ts []incident.Transition) {
	for _, t := range ts {
		if k := keyOfFinding(&t.Finding); r[k].At.IsZero() {
			r[k] = t
		}
	}
}
