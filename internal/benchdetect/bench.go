package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type bench struct {
	slices, warm, ticks, promTicks, runs int
	only, prometheus, engine             string
	profile, record                      string
	concurrency                          int
	report, show                         bool
}

func (b *bench) run(ctx context.Context) error {
	if b.show {
		return b.showRules()
	}
	if _, err := os.Stat(b.prometheus); err != nil {
		return fmt.Errorf("%w: make bench-detect builds it", err)
	}
	dir, err := os.MkdirTemp("", "benchdetect-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	all, err := b.recorded()
	if err != nil {
		return err
	}
	for i := range b.runs {
		for _, side := range b.sides() { // in turn, so that all see the same machine
			began := time.Now()
			r, err := b.one(ctx, side, filepath.Join(dir, "checkpoint"))
			if err != nil {
				return fmt.Errorf("%s: %w", side, err)
			}
			if err := b.keep(all, side, r); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "run %d of %d, %s: %.3f s of processor time a tick, %d findings, took %.0f s\n", i+1, b.runs, side,
				mean(r.CPU)+mean(r.AppendCPU), len(r.Firing), time.Since(began).Seconds())
		}
	}
	return b.write(all)
}

// sides are what is measured, in order.
func (b *bench) sides() (out []string) {
	names := []string{roleTick, roleRestart, roleStored, sideShipped}
	for _, v := range variants {
		names = append(names, v.name)
	}
	for _, n := range names {
		if b.only == "" || slices.Contains(strings.Split(b.only, ","), n) {
			out = append(out, n)
		}
	}
	return out
}

func (b *bench) one(ctx context.Context, side, checkpoint string) (r result, err error) {
	c := config{Slices: b.slices, Warm: b.warm, Ticks: b.promTicks, Checkpoint: checkpoint}
	if b.profile != "" {
		c.Profile = b.profile + "-" + side
	}
	switch side {
	case sideShipped:
		c.Ticks, c.Shipped, c.Checkpoint = b.ticks, true, ""
		return call(ctx, roleTick, c)
	case roleTick:
		c.Ticks = b.ticks
		return call(ctx, side, c)
	case roleRestart, roleStored:
		if _, err := os.Stat(checkpoint); err != nil {
			return r, fmt.Errorf("%w: a restart needs -only to have tocsin, too", err)
		}
		if side == roleStored {
			return b.stored(ctx, c)
		}
		return call(ctx, side, c)
	}
	i := slices.IndexFunc(variants, func(v variant) bool { return v.name == side })
	return runPrometheus(ctx, c, b.prometheus, variants[i], b.concurrency)
}

// call runs this program as a child.
func call(ctx context.Context, role string, c config) (r result, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, fmt.Errorf("find this program: %w", err)
	}
	c.Started = time.Now()
	told, err := json.Marshal(c)
	if err != nil {
		return r, fmt.Errorf("tell %s: %w", role, err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), envRole+"="+role, envConfig+"="+string(told))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("run %s: %w", role, err)
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("read the answer of %s: %w", role, err)
	}
	return r, nil
}

func (b *bench) showRules() error {
	fmt.Print(tocsinRules())
	for _, v := range variants {
		text, err := promRules(v)
		if err != nil {
			return err
		}
		fmt.Printf("\n# Prometheus, %s: %s\n%s", v.name, v.about, text)
	}
	return nil
}
