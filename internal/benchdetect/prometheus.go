package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/tocsin-project/tocsin/internal/measured"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// What promrules reads on its standard input, by encoding/gob, and the line of JSON that it answers. internal/tools/promrules/wire.go
// has the same fields and says what they mean.
type (
	promHeader struct {
		Series      []map[string]string
		Rules       string
		Concurrency int
		Reopen      bool
	}
	promFrame struct {
		Time   int64
		Values []float64
		Eval   []string
		Timed  bool
	}
	promReport struct {
		Version         string
		Ticks           []promTick
		Heap, RSS, Peak int64
		Series          uint64
		Alerts          []map[string]string
		WarmCPU         float64
		WarmFrames      int
		WholeCPU        float64
		WholeFrames     int

		OpenWall, OpenCPU, FirstWall, FirstCPU float64
	}
	promTick struct {
		AppendCPU, AppendWall float64
		EvalCPU, EvalWall     float64
		Rules                 map[string]float64
	}
)

// alertsBefore is how many ticks before the measured ones Prometheus evaluates its alerts once, so that what has to last a while
// for an alert to fire has lasted. Before that it only takes samples in; Tocsin's side evaluates all ticks.
const alertsBefore = 8

var metrics = []string{"requests_total", "failures_total", "slow_total"}

// runPrometheus gives promrules the world's counters and the rules of a variant.
func runPrometheus(ctx context.Context, c config, program string, v variant, concurrency int) (r result, err error) {
	w, err := newWorld(c.Slices, troubleFrom(c.Warm))
	if err != nil {
		return r, err
	}
	h := promHeader{Concurrency: concurrency, Reopen: v.recorded}
	if h.Rules, err = promRules(v); err != nil {
		return r, err
	}
	for _, k := range w.keys {
		for _, m := range metrics {
			h.Series = append(h.Series, map[string]string{
				"__name__": m, "service": k.Service, "operation": k.Operation, "access": k.Access.String(), "region": k.Attributes.Get("region"),
			})
		}
	}
	var args []string
	if c.Profile != "" {
		args = append(args, "-cpuprofile", c.Profile)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return r, fmt.Errorf("start promrules: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return r, fmt.Errorf("start promrules: %w", err)
	}
	fed := w.feed(gob.NewEncoder(in), h, c, v, &r.Load)
	in.Close()
	if err := cmd.Wait(); err != nil {
		return r, fmt.Errorf("promrules: %w", err)
	}
	if fed != nil {
		return r, fmt.Errorf("feed promrules: %w", fed)
	}
	var p promReport
	if err := json.NewDecoder(io.Reader(&out)).Decode(&p); err != nil {
		return r, fmt.Errorf("read promrules' report: %w", err)
	}
	p.into(&r)
	return r, nil
}

// feed sends a sample of each counter for each bucket, at its end.
func (w *world) feed(enc *gob.Encoder, h promHeader, c config, v variant, loaded *float64) error {
	if err := enc.Encode(h); err != nil {
		return err
	}
	f := promFrame{Values: make([]float64, len(h.Series))}
	for k := range c.Warm + c.Ticks {
		f.Time = began.Add(time.Duration(k+1) * signal.BucketSize).UnixMilli()
		for i := range w.keys {
			x := w.at(i, k)
			f.Values[3*i] += float64(x.requests)
			f.Values[3*i+1] += float64(x.failures)
			f.Values[3*i+2] += float64(x.slow)
		}
		f.Eval, f.Timed = nil, k >= c.Warm
		switch {
		case f.Timed || k == c.Warm-alertsBefore:
			f.Eval = []string{recording, alerting}
		case v.recorded && k%6 == 5: // once a minute is enough to fill the windows
			f.Eval = []string{recording}
		}
		if k == c.Warm {
			*loaded = measured.Load()
		}
		if err := enc.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

func (p *promReport) into(r *result) {
	r.Version, r.Heap, r.RSS, r.Peak, r.Series = p.Version, p.Heap, p.RSS, p.Peak, int(p.Series)
	r.Warm, r.Whole = p.WarmCPU/float64(max(1, p.WarmFrames)), p.WholeCPU/float64(max(1, p.WholeFrames))
	if p.OpenWall > 0 {
		r.Restart = &restart{Read: p.OpenWall, ReadCPU: p.OpenCPU, First: p.FirstWall, FirstCPU: p.FirstCPU}
	}
	r.Rules = map[string]float64{}
	for _, t := range p.Ticks {
		r.CPU, r.Wall = append(r.CPU, t.EvalCPU), append(r.Wall, t.EvalWall)
		r.AppendCPU, r.AppendWall = append(r.AppendCPU, t.AppendCPU), append(r.AppendWall, t.AppendWall)
		for n, s := range t.Rules {
			r.Rules[n] += s / float64(len(p.Ticks))
		}
	}
	for _, a := range p.Alerts {
		r.Firing = append(r.Firing, finding(a["alertname"], a["service"], a["operation"], a["access"], a["region"]))
	}
	slices.Sort(r.Firing)
}
