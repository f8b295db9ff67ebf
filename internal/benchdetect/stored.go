package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tocsin-project/tocsin/internal/chlocal"
	"github.com/tocsin-project/tocsin/internal/clickhouse"
	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/measured"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
	shipped "github.com/tocsin-project/tocsin/rules"
)

// grace is how long after a bucket's end the loop waits for rows of it; the made-up partition is as far ahead.
const grace = 10 * time.Second

// stored measures a restart with a database: an engine of its own gets the checkpoint, the ticks that are to be replayed and the rows of
// one more, and a new process takes the lead and goes on until that one is stored.
func (b *bench) stored(ctx context.Context, c config) (r result, err error) {
	lib, err := chlocal.Install(ctx, chlocal.InstallOptions{Progress: os.Stderr})
	if err != nil {
		return r, fmt.Errorf("install the engine: %w", err)
	}
	dir, err := os.MkdirTemp("", "benchdetect-clickhouse-")
	if err != nil {
		return r, fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	engine, err := chlocal.Start(ctx, chlocal.Options{Binary: b.engine, LibPath: lib, DataDir: filepath.Join(dir, "data"), Logger: quiet()})
	if err != nil {
		return r, fmt.Errorf("start ClickHouse: %w", err)
	}
	defer engine.Stop(context.WithoutCancel(ctx)) //nolint:errcheck // its data is thrown away
	c.ClickHouse, c.Engine, c.Profile = engine.Addr(), engine.Pid(), ""
	for _, c.Replay = range []int{0, replayed(c.Slices)} {
		c.Database = fmt.Sprintf("replay%d", c.Replay)
		prepared, err := call(ctx, rolePrepare, c)
		if err != nil {
			return r, err
		}
		again, err := call(ctx, roleStored, c)
		if err != nil {
			return r, err
		}
		if c.Replay == 0 {
			r = again
			continue
		}
		r.Restart.Replay, r.Restart.ReplayCPU = again.Restart.First, again.Restart.FirstCPU
		r.Claim = prepared.Claim
	}
	return r, nil
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

func openDB(c config) (*clickhouse.DB, error) {
	cfg := clickhouse.Config{Addresses: []string{c.ClickHouse}, Database: c.Database}
	cfg.SetDefaults()
	db, err := clickhouse.Open(cfg, quiet(), clickhouse.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	return db, nil
}

// claim is what reading a tick's rows from the database costs, a tick, in seconds.
type claim struct{ Wall, CPU, Database float64 }

// runPrepare is the role that fills the database: a checkpoint with tick 1, the ticks to be replayed, and the rows of one more.
func runPrepare(ctx context.Context, c config) (r result, err error) {
	db, err := openDB(c)
	if err != nil {
		return r, err
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil {
		return r, fmt.Errorf("make tables: %w", err)
	}
	set, err := rules(c)
	if err != nil {
		return r, err
	}
	d, err := restored(c, set)
	if err != nil {
		return r, err
	}
	w, err := newWorld(c.Slices, troubleFrom(c.Warm))
	if err != nil {
		return r, err
	}
	store, line := clickhouse.NewStore(db), clickhouse.NewTimeline(db)
	epoch, err := line.Lead(ctx, "benchdetect")
	if err != nil {
		return r, fmt.Errorf("take the lead: %w", err)
	}
	first := int(d.Position().Sub(began) / signal.BucketSize)
	x := &claim{}
	for n := range c.Replay + 2 {
		from := began.Add(time.Duration(first+n) * signal.BucketSize)
		if err := w.insert(ctx, store, first+n, n); err != nil {
			return r, err
		}
		if n == c.Replay+1 {
			break // this one is for the detector that restarts
		}
		p, err := line.Progress(ctx)
		if err != nil {
			return r, fmt.Errorf("progress: %w", err)
		}
		t := detect.Tick{Number: uint64(n + 1), Epoch: epoch, From: from, To: from.Add(signal.BucketSize), Marks: p.Marks, Clock: p.Clock, Rules: set.Revision}
		cpu, wall, database := selfCPU(), time.Now(), processCPU(c.Engine)
		in, err := line.Claim(ctx, t)
		if err != nil {
			return r, fmt.Errorf("claim: %w", err)
		}
		if n > 0 { // the first fills a cache
			share := 1 / float64(c.Replay)
			x.CPU, x.Wall, x.Database = x.CPU+share*(selfCPU()-cpu), x.Wall+share*time.Since(wall).Seconds(), x.Database+share*(processCPU(c.Engine)-database)
		}
		if len(in.Cells) != c.Slices {
			return r, fmt.Errorf("tick %d has %d rows, want %d", t.Number, len(in.Cells), c.Slices)
		}
		var out detect.Outputs
		if n == 0 {
			d.Tick(in)
			if out.Checkpoint, err = d.Snapshot(); err != nil {
				return r, fmt.Errorf("snapshot: %w", err)
			}
			d = nil
		}
		if err := line.Commit(ctx, t, out); err != nil {
			return r, fmt.Errorf("commit: %w", err)
		}
	}
	r.Claim = x
	return r, nil
}

// insert stores bucket k as the n-th batch of one partition.
func (w *world) insert(ctx context.Context, store *clickhouse.Store, k, n int) error {
	end := began.Add(time.Duration(k+1)*signal.BucketSize + grace)
	b := &ingest.Batch{
		Stream: signal.Requests, Time: end, Range: ingest.Range{Topic: "requests", Start: int64(n * len(w.keys)), End: int64((n + 1) * len(w.keys))},
		Marker: ingest.Marker{Records: uint64(len(w.keys)), Events: uint64(len(w.keys)), Watermark: end, Clock: end, MaxEventTime: end, RecordTime: end, Revision: "bench"},
	}
	for _, c := range w.cells(k) {
		b.Cells = append(b.Cells, ingest.NewCell(c))
	}
	if err := store.Insert(ctx, b); err != nil {
		return fmt.Errorf("store bucket %d: %w", k, err)
	}
	return nil
}

// runStored is the role of a detector that restarts: First is from the start of its process until the tick is stored.
func runStored(ctx context.Context, c config) (r result, err error) {
	r.Load = measured.Load()
	db, err := openDB(c)
	if err != nil {
		return r, err
	}
	defer db.Close()
	set, err := rules(c)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	var once sync.Once
	x := &restart{}
	l := detect.NewLoop(clickhouse.NewTimeline(db), detect.LoopConfig{Detector: detect.Config{Rules: set}, Owner: "benchdetect", Grace: grace, Logger: quiet(), Notify: func() {
		once.Do(func() {
			x.First, x.FirstCPU = time.Since(c.Started).Seconds(), selfCPU()
			cancel()
		})
	}})
	if err := l.Run(ctx); err != nil {
		return r, fmt.Errorf("the loop: %w", err)
	}
	if x.First == 0 {
		return r, fmt.Errorf("the loop came to no tick: %+v", l.Health())
	}
	r.RSS, r.Peak = resident()
	r.Restart = x
	return r, nil
}

// rules are the bench's, as Tocsin reads them, or those that Tocsin ships.
func rules(c config) (set *rule.Set, err error) {
	if c.Shipped {
		set, err = rule.LoadFS(shipped.FS, ".")
	} else {
		set, err = rule.FromFiles(map[string]string{"bench.yaml": tocsinRules()})
	}
	if err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	return set, nil
}
