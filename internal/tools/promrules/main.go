// Command promrules appends samples to a Prometheus TSDB, evaluates a rule file at their times with Prometheus' rules
// engine, and says what that cost. It is the other side of make bench-detect: TSDB, PromQL engine and rule groups are
// Prometheus' own, put together as its main program does; nothing is scraped and nobody is notified.
package main

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
)

func main() {
	profile := flag.String("cpuprofile", "", "write a CPU profile of the timed frames here")
	flag.Parse()
	if err := run(context.Background(), os.Stdin, os.Stdout, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "promrules:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer, profile string) error {
	dec := gob.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	var h header
	if err := dec.Decode(&h); err != nil {
		return fmt.Errorf("read the header: %w", err)
	}
	dir, err := os.MkdirTemp("", "promrules-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	s, err := open(ctx, dir, &h)
	if err != nil {
		return err
	}
	defer func() { s.close() }()
	r, err := s.frames(ctx, dec, profile)
	if err != nil {
		return err
	}
	r.Version = version()
	r.RSS, r.Peak = memory()
	r.Heap = heap()
	r.Series = s.db.Head().NumSeries()
	r.Alerts = s.firing()
	if h.Reopen {
		if s, err = s.reopen(ctx, dir, &h, &r); err != nil {
			return err
		}
	}
	return json.NewEncoder(out).Encode(r)
}

func (s *server) frames(ctx context.Context, dec *gob.Decoder, profile string) (r report, err error) {
	var began float64
	for {
		var f frame
		if err := dec.Decode(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return r, fmt.Errorf("read a frame: %w", err)
		}
		if f.Timed && r.WholeFrames == 0 {
			runtime.GC()
			began = selfCPU()
			if profile != "" {
				w, err := os.Create(profile)
				if err != nil {
					return r, fmt.Errorf("profile: %w", err)
				}
				defer w.Close()
				if err := pprof.StartCPUProfile(w); err != nil {
					return r, fmt.Errorf("profile: %w", err)
				}
				defer pprof.StopCPUProfile()
			}
		}
		t, err := s.frame(ctx, &f)
		if err != nil {
			return r, err
		}
		if !f.Timed {
			r.WarmFrames++
			r.WarmCPU += t.AppendCPU + t.EvalCPU
			continue
		}
		r.WholeFrames++
		r.Ticks = append(r.Ticks, t)
	}
	if r.WholeFrames > 0 {
		r.WholeCPU = selfCPU() - began
	}
	return r, nil
}
