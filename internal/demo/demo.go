// Package demo holds a whole installation on one machine: the embedded Kafka and the stand-ins for PagerDuty and Slack in
// this process, ClickHouse and `tocsin run` as its children, and a scenario that is played into Kafka. `make demo` is
// this, and so are the tests that kill parts of it. Production uses none of it.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/tocsin-project/tocsin/internal/chlocal"
	"github.com/tocsin-project/tocsin/internal/kafka"
	"github.com/tocsin-project/tocsin/internal/kafkalocal"
	"github.com/tocsin-project/tocsin/internal/scenario"
	"github.com/tocsin-project/tocsin/internal/scenario/wire"
	"github.com/tocsin-project/tocsin/internal/standin/pagerduty"
	"github.com/tocsin-project/tocsin/internal/standin/slack"
)

// Options say what to run.
type Options struct {
	Scenario *scenario.Scenario
	Seed     int64
	Dir      string // of all files; "" is in the user's cache
	Fresh    bool   // begin with empty folders
	Listen   string // of the console
	Speed    float64
	// Binary is the program that `run` belongs to, this one by default; Engine is chlocal, beside it by default.
	Binary, Engine string
	Out            io.Writer // what a person watches
	// Until ends the scenario early, where it is not zero.
	Until time.Time
	// BeforeDaemon is called when all but the daemon is up.
	BeforeDaemon func(*Demo) error
	// WallClock makes the daemon live by the wall clock, as in production, instead of by the records' own time.
	WallClock bool
}

// Demo is a running installation. Whoever starts it closes it.
type Demo struct {
	Options
	screen *screen
	logger *slog.Logger
	log    *os.File

	lib       string
	broker    *kafkalocal.Broker
	engine    *chlocal.Server
	kafka     *kafka.Client
	PagerDuty *pagerduty.Server
	Slack     *slack.Server
	daemon    atomic.Pointer[daemon] // tests replace it while the demo plays
	api       *api
	follower  *follower
	judged    atomic.Int64
	Feed      *feed
}

// Start brings everything up, in the order of its needs, and says so.
func Start(ctx context.Context, o Options) (_ *Demo, err error) {
	if err := checkListen(o.Listen); err != nil {
		return nil, err
	}
	d := &Demo{Options: o, screen: newScreen(o.Out)}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	for _, part := range []func(context.Context) error{
		d.folders, d.library, d.startKafka, d.StartClickHouse, d.startStandins, d.configure, d.prepare, d.StartDaemon,
	} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	d.Feed = newFeed(o.Scenario, o.Seed, d.kafka.NewProducer(), &d.judged, o.Speed)
	if !o.Until.IsZero() {
		d.Feed.until = o.Until
	}
	if !o.Fresh {
		if err := d.Feed.skipStored(ctx, d.kafka); err != nil {
			return nil, err
		}
	}
	d.follower = &follower{api: d.api, screen: d.screen, seen: map[string]uint64{}, said: map[string]bool{}, told: d.tellings}
	return d, nil
}

func (d *Demo) folders(context.Context) error {
	if d.Dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("finding a folder for the demo: %w (use --dir)", err)
		}
		d.Dir = filepath.Join(cache, "tocsin", "demo")
	}
	dir, err := filepath.Abs(d.Dir)
	if err != nil {
		return err
	}
	d.Dir = dir
	if d.Fresh {
		if err := d.empty(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		return fmt.Errorf("making the demo's folder: %w", err)
	}
	if d.log, err = os.OpenFile(filepath.Join(d.Dir, "demo.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return fmt.Errorf("opening the demo's log: %w", err)
	}
	d.logger = slog.New(slog.NewTextHandler(d.log, nil))
	return nil
}

// parts are the only things in the folder that a fresh start removes: a mistyped --dir must not cost anybody's files.
var parts = []string{"kafka", "clickhouse", "tocsin", "demo.log", "daemon.log"}

func (d *Demo) empty() error {
	if err := unused(filepath.Join(d.Dir, "kafka")); err != nil {
		return err
	}
	for _, p := range parts {
		if err := os.RemoveAll(filepath.Join(d.Dir, p)); err != nil {
			return fmt.Errorf("emptying the demo's folder: %w", err)
		}
	}
	return nil
}

// unused refuses a folder in which another demo lives: emptying it would take its files from under it.
func unused(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return nil //nolint:nilerr // there is nothing yet
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	b, err := kafkalocal.Start(ctx, kafkalocal.Options{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
	if errors.Is(err, kafkalocal.ErrLocked) {
		return fmt.Errorf("another demo runs in %s; end it, or give this one a folder of its own with --dir", filepath.Dir(dir))
	}
	if err == nil {
		return b.Close()
	}
	return nil // whatever else is wrong with it, it will be removed
}

func (d *Demo) library(ctx context.Context) (err error) {
	began := time.Now()
	if d.lib, err = chlocal.Install(ctx, chlocal.InstallOptions{Progress: d.screen}); err != nil {
		return err
	}
	if d.Engine == "" {
		if d.Engine, err = chlocal.FindBinary(); err != nil {
			return err
		}
	}
	d.screen.step(began, "ClickHouse's library is installed")
	return nil
}

func (d *Demo) startKafka(ctx context.Context) (err error) {
	began := time.Now()
	var topics []kafkalocal.Topic
	for _, t := range (wire.Options{}).Topics() {
		// The scenario lies in the past: retention by age would delete it at once.
		topics = append(topics, kafkalocal.Topic{Name: t.Name, Partitions: t.Partitions, Retention: -1})
	}
	// So do records that people post to the topics that the daemon would make, with seven days.
	for _, name := range []string{"tocsin.requests", "tocsin.alerts"} {
		topics = append(topics, kafkalocal.Topic{Name: name, Partitions: 1, Retention: -1})
	}
	d.broker, err = kafkalocal.Start(ctx, kafkalocal.Options{DataDir: filepath.Join(d.Dir, "kafka"), Topics: topics, Logger: d.logger.With("component", "kafka")})
	if err != nil {
		return fmt.Errorf("starting Kafka: %w", err)
	}
	c := kafka.Config{Brokers: []string{d.broker.Addr()}}
	c.SetDefaults()
	if d.kafka, err = kafka.NewClient(c, d.logger, nil); err != nil {
		return err
	}
	d.screen.step(began, "Kafka on %s", d.broker.Addr())
	return nil
}

// StartClickHouse starts the engine, on the address that it had before if it had one.
func (d *Demo) StartClickHouse(ctx context.Context) error {
	began := time.Now()
	listen := "127.0.0.1:0"
	if d.engine != nil {
		listen = d.engine.Addr()
	}
	engine, err := chlocal.Start(ctx, chlocal.Options{
		Binary: d.Engine, LibPath: d.lib, DataDir: filepath.Join(d.Dir, "clickhouse"), Listen: listen,
		Logger: d.logger.With("component", "clickhouse"), Restart: true,
	})
	if err != nil {
		return fmt.Errorf("starting ClickHouse: %w", err)
	}
	d.engine = engine
	d.screen.step(began, "ClickHouse %s on %s", engine.Version(), engine.Addr())
	return nil
}

// StopClickHouse stops the engine; StartClickHouse starts it again.
func (d *Demo) StopClickHouse(ctx context.Context) error { return d.engine.Stop(ctx) }

// ClickHouse is the address of the engine's HTTP interface.
func (d *Demo) ClickHouse() string { return d.engine.Addr() }

func (d *Demo) startStandins(context.Context) (err error) {
	// The scenario's hours pass in seconds; limits per second of wall time would hold back what is minutes apart.
	if d.PagerDuty, err = pagerduty.Start("127.0.0.1:0", pagerduty.Options{Keys: []string{routingKey}, Unlimited: true}); err != nil {
		return fmt.Errorf("starting the stand-in for PagerDuty: %w", err)
	}
	if d.Slack, err = slack.Start("127.0.0.1:0", slack.Options{Token: slackToken, Channels: []string{"incidents"}, Unlimited: true}); err != nil {
		return fmt.Errorf("starting the stand-in for Slack: %w", err)
	}
	return nil
}

func (d *Demo) prepare(context.Context) error {
	if d.BeforeDaemon == nil {
		return nil
	}
	return d.BeforeDaemon(d)
}

// StartDaemon starts `tocsin run` and waits until it is ready.
func (d *Demo) StartDaemon(ctx context.Context) (err error) {
	began := time.Now()
	if d.Binary == "" {
		if d.Binary, err = os.Executable(); err != nil {
			return err
		}
	}
	child, err := startDaemon(d.Binary, d.configFile(), d.logFile())
	if err != nil {
		return err
	}
	d.daemon.Store(child)
	starting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := d.api.waitReady(starting, child.done); err != nil {
		return fmt.Errorf("the daemon did not become ready: %w; its log is %s", err, d.logFile())
	}
	d.screen.step(began, "Tocsin is ready, its console is %s", d.api.base)
	return nil
}

func (d *Demo) logFile() string { return filepath.Join(d.Dir, "daemon.log") }

// KillDaemon ends the daemon as a crash would.
func (d *Demo) KillDaemon() { d.daemon.Load().kill() }

// Close stops everything that runs, the daemon first.
func (d *Demo) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	note := func(what string, err error) {
		if err != nil && d.logger != nil {
			d.logger.Error("stopping failed", "part", what, "err", err)
		}
	}
	if child := d.daemon.Load(); child != nil {
		note("daemon", child.stop(ctx))
	}
	if d.engine != nil {
		note("ClickHouse", d.engine.Stop(ctx))
	}
	if d.kafka != nil {
		d.kafka.Close()
	}
	if d.broker != nil {
		note("Kafka", d.broker.Close())
	}
	if d.PagerDuty != nil {
		note("PagerDuty", d.PagerDuty.Close())
	}
	if d.Slack != nil {
		note("Slack", d.Slack.Close())
	}
	if d.log != nil {
		_ = d.log.Close()
	}
}

// checkListen refuses an address before anything is started for it.
func checkListen(listen string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("--listen %q is not host:port", listen)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--listen %q is not on loopback: whoever reaches the demo's console may give it orders", listen)
	}
	return nil
}

// freePort finds a port when the usual one is taken, by another demo most likely.
func freePort(listen string) (string, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		host, _, _ := net.SplitHostPort(listen)
		if l, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			return "", fmt.Errorf("finding a port for the console: %w", err)
		}
	}
	defer l.Close()
	return l.Addr().String(), nil
}
