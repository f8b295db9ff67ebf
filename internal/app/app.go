package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/fx"
)

// Options is what main hands in besides the configuration file.
type Options struct {
	Config  *Config
	Stderr  io.Writer
	Version string
}

// modules is the process, from what needs nothing to what needs everything. Constructors start in the order of their
// needs and stop in the opposite one.
func modules() fx.Option {
	return fx.Options(
		selfpageModule,   // tells people that Tocsin is in trouble
		clickhouseModule, // where everything is kept
		kafkaModule,      // where everything comes from
		ingestModule,     // the first loop: Kafka to ClickHouse
		leadModule,       // the second and third loop, on one process at a time: detect and respond
		consoleModule,    // what people and programs see
		doorModule,       // what programs bring that cannot reach Kafka
		serverModule,     // how they reach it
	)
}

func wiring(o Options) fx.Option {
	return fx.Options(
		fx.Supply(o.Config),
		fx.Provide(
			func() *slog.Logger { return newLogger(o.Config.Log, o.Stderr) },
			func() (*Files, error) { return LoadFiles(o.Config) },
			newRegistry,
			func() version { return version(o.Version) },
		),
		wiringLogger(),
		fx.StartTimeout(stopTimeout), fx.StopTimeout(stopTimeout),
		modules(),
	)
}

type version string

func newRegistry(v version) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "tocsin", Name: "build_info", Help: "1, with the version as label.", ConstLabels: prometheus.Labels{"version": string(v)},
	})
	info.Set(1)
	reg.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// New wires the process without starting it.
func New(o Options) *fx.App { return fx.New(wiring(o)) }

// Run runs the daemon until ctx ends or a part fails for good.
func Run(ctx context.Context, o Options) error {
	a := New(o)
	if err := a.Err(); err != nil {
		return plain(err)
	}
	starting, cancel := context.WithTimeout(ctx, a.StartTimeout())
	defer cancel()
	if err := a.Start(starting); err != nil {
		return plain(err)
	}
	code := 0
	select {
	case <-ctx.Done():
	case s := <-a.Wait():
		code = s.ExitCode
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.StopTimeout())
	defer cancel()
	if err := a.Stop(stopping); err != nil {
		return fmt.Errorf("stopping: %w", plain(err))
	}
	if code != 0 {
		return errors.New("a part of Tocsin failed; the log says which")
	}
	return nil
}

// plain takes fx's words about constructors off an error: people are helped by the cause alone.
func plain(err error) error {
	for {
		text := err.Error()
		if !strings.Contains(text, "could not build arguments") && !strings.Contains(text, "failed to build") && !strings.Contains(text, "received non-nil error") {
			return err
		}
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// Version is what this binary was built from.
func Version() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		return b.Main.Version
	}
	return "dev"
}

// binary is what ticks call the program that judged them: a replay comes to the same bytes only with the same code on the same
// architecture. Builds that their version does not tell apart are told apart by their content.
func binary(v version) string {
	name := string(v) + " " + runtime.GOARCH
	if v != "dev" && !strings.HasSuffix(string(v), "+dirty") {
		return name
	}
	sum, err := executableSum()
	if err != nil {
		return name // nothing but a replay's word on how exact it is depends on it
	}
	return name + " " + sum
}

var executableSum = sync.OnceValues(func() (string, error) {
	file, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
})

// ExitWithParent ends ctx when standard input ends: a parent that is killed cannot stop its children otherwise.
func ExitWithParent(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx
}
