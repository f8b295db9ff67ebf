package backtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/detect/memory"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/route"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/scenario/recording"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// Options say by what a recording is judged.
type Options struct {
	// Rules and Catalogue are used where the recording has none of its own.
	Rules     *rule.Set
	Catalogue *catalogue.Catalogue
	// OnlyRules leaves out the rules that a recording has.
	OnlyRules bool
	Routes    *route.Config
	// RestartAt, where it is not zero, stops the detector at that event time and goes on with a new one from what the
	// timeline keeps. The answer must be the same.
	RestartAt time.Time
	// AsLive judges each tick of stored history by the rules and the catalogue that it names. Rules and Catalogue stand in
	// where those are not stored.
	AsLive bool
	// ExternalLabels are those of the installation whose history it is.
	ExternalLabels map[string]string
	// Binary is what this program calls itself in ticks; "" compares with none.
	Binary string
	// Verify compares a replay of stored history with what the live detector stored.
	Verify bool
	// Labels are what stored history is scored against; a recording has its own.
	Labels *Labels
	// BadLine is told of lines that are no event; the replay goes on without them.
	BadLine func(error)
}

// Check reads all that a folder holds besides its events, and says what is wrong with it.
func Check(folder string) error {
	rec, err := recording.Open(folder)
	if err != nil {
		return cmp.Or(holdsRecordings(folder), err)
	}
	_, _, rulesErr := own(rec, Options{})
	_, labelsErr := ReadLabels(folder)
	return errors.Join(rulesErr, labelsErr)
}

// holdsRecordings recognises a folder of recordings, which is easily taken for one.
func holdsRecordings(folder string) error {
	var subs []string
	for _, levels := range []string{"*", "*/*", "*/*/*"} {
		more, _ := filepath.Glob(filepath.Join(folder, levels, "events.jsonl*")) // fails for a broken pattern only: then the first error stands
		subs = append(subs, more...)
	}
	if len(subs) == 0 {
		return nil
	}
	return fmt.Errorf("%s is no recording but holds %d: name each, for example %s", folder, len(subs), filepath.Dir(subs[0]))
}

// tickSteps are evaluated in one tick. How ticks are cut makes no difference to what is concluded, only to the cost.
const tickSteps = 60

// Run replays one recording and, where it has labels, scores it.
func Run(ctx context.Context, folder string, o Options) (Recording, error) {
	rec, err := recording.Open(folder)
	if err != nil {
		return Recording{}, err
	}
	if o.Rules, o.Catalogue, err = own(rec, o); err != nil {
		return Recording{}, err
	}
	r := &replay{Options: o, timeline: memory.New(), journal: newJournal()}
	r.detector = detect.New(detect.Config{Rules: o.Rules, Catalogue: o.Catalogue})
	if err := r.all(ctx, rec); err != nil {
		return Recording{}, fmt.Errorf("%s: %w", folder, err)
	}
	labels, err := ReadLabels(folder)
	if err != nil {
		return Recording{}, err
	}
	out := r.journal.recording(rec.Name, r.from, r.to, o, labels)
	out.NotJudged = asking(o.Rules)
	return out, nil
}

// asking names the rules that judge by answers of a database.
func asking(set *rule.Set) (alerts []string) {
	for _, r := range set.Rules() {
		if _, ok := r.Params.(*rule.SQL); ok {
			alerts = append(alerts, r.Alert)
		}
	}
	return alerts
}

// recording tells what the journal holds, whom it would have paged, and how good that was.
func (j *journal) recording(name string, from, to time.Time, o Options, labels *Labels) Recording {
	for _, p := range respond.Simulate(o.Routes, respond.Settings{}, j.events) {
		j.pages[p.Incident] = append(j.pages[p.Incident], Page{At: p.At, Severity: p.Severity, Receiver: p.Receiver, Reason: p.Reason})
	}
	out := Recording{
		Name: name, From: from, To: to, Incidents: list(j.incidents()), Warnings: list(j.warnings), Findings: list(j.findings),
		Labels: labels, Traffic: j.traffic.rows(),
	}
	out.Rules = j.scoreRules(labels, to)
	if labels != nil {
		out.Score = score(labels, out.Incidents, to)
	}
	return out
}

// own prefers the rules and the catalogue that came with a recording, unless the rules are what is being tried.
func own(rec *recording.Recording, o Options) (*rule.Set, *catalogue.Catalogue, error) {
	var err error
	if rec.Rules != "" && !o.OnlyRules {
		if o.Rules, err = rule.LoadFS(os.DirFS(rec.Rules), "."); err != nil {
			return nil, nil, err
		}
	}
	if rec.Catalogue != "" {
		if o.Catalogue, err = catalogue.Load(rec.Catalogue); err != nil {
			return nil, nil, err
		}
	}
	return o.Rules, o.Catalogue, nil
}

type replay struct {
	Options
	timeline *memory.Timeline
	detector *detect.Detector
	journal  *journal
	number   uint64
	at       time.Time // end of the last tick
	from, to time.Time // of the recording
	restart  bool      // has happened
}

func (r *replay) all(ctx context.Context, rec *recording.Recording) error {
	for e, err := range rec.All() {
		var bad *recording.LineError
		if errors.As(err, &bad) {
			if r.BadLine != nil {
				r.BadLine(err)
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := r.advance(ctx, e.At()); err != nil {
			return err
		}
		r.timeline.Add(e)
		if x, ok := e.(*signal.Request); ok {
			r.journal.traffic.count(x)
		}
		if r.to.Before(e.At()) {
			r.to = e.At()
		}
	}
	if r.from.IsZero() {
		return errors.New("the recording holds no event")
	}
	return r.tick(ctx, signal.BucketOf(r.to).Add(signal.BucketSize))
}

// advance evaluates what is complete once an event of time t has come: everything before t's bucket.
func (r *replay) advance(ctx context.Context, t time.Time) error {
	bucket := signal.BucketOf(t)
	if r.from.IsZero() {
		r.from, r.to, r.at = t, t, bucket
		return nil
	}
	if !r.RestartAt.IsZero() && !r.restart && !bucket.Before(r.RestartAt) {
		r.restart = true
		if err := r.tick(ctx, signal.BucketOf(r.RestartAt)); err != nil {
			return err
		}
		return r.resume(ctx)
	}
	if bucket.Sub(r.at) < tickSteps*signal.BucketSize {
		return nil
	}
	return r.tick(ctx, bucket)
}

func (r *replay) tick(ctx context.Context, to time.Time) error {
	if !to.After(r.at) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.timeline.SetProgress(to, to)
	p, err := r.timeline.Progress(ctx)
	if err != nil {
		return err
	}
	r.number++
	t := detect.Tick{Number: r.number, From: r.at, To: to, Marks: p.Marks, Clock: p.Clock, Rules: r.Rules.Revision, Catalogue: r.Catalogue.Revision}
	in, err := r.timeline.Claim(ctx, t)
	if err != nil {
		return err
	}
	out := r.detector.Tick(in)
	if r.number%checkpointEvery == 0 {
		if out.Checkpoint, err = r.detector.Snapshot(); err != nil {
			return err
		}
	}
	if err := r.timeline.Commit(ctx, t, out); err != nil {
		return err
	}
	r.at = to
	r.journal.add(out.Events, out.Warnings, out.Transitions)
	return nil
}

const checkpointEvery = 30

// resume makes another detector out of what the timeline has stored, as a restarted daemon does.
func (r *replay) resume(ctx context.Context) error {
	r.timeline = r.timeline.Again()
	res, err := r.timeline.Resume(ctx)
	if err != nil {
		return err
	}
	r.detector = detect.New(detect.Config{Rules: r.Rules, Catalogue: r.Catalogue})
	if res.Checkpoint != nil {
		if err := r.detector.Restore(res.Checkpoint); err != nil {
			return err
		}
	}
	for _, in := range res.Ticks {
		r.detector.Tick(in)
	}
	return nil
}
