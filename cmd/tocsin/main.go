// Tocsin is the daemon and its command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/tocsin-project/tocsin/deploy"
	"github.com/tocsin-project/tocsin/internal/app"
	"github.com/tocsin-project/tocsin/internal/cli"
	"github.com/tocsin-project/tocsin/internal/demo"
	"github.com/tocsin-project/tocsin/internal/scenario"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Execute(ctx, cli.Env{
		Stdout: os.Stdout, Stderr: os.Stderr, Version: app.Version(),
		Run: run, Demo: runDemo, CheckConfig: app.CheckConfig, CheckQueries: app.CheckQueries, Respond: app.Rehearse, Routes: app.Routes, Rewind: app.Rewind, Stored: app.OpenStored,
	}, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, o cli.RunOptions) error {
	c, err := app.LoadConfig(o.Config)
	if err != nil {
		return err
	}
	if o.ExitWithParent {
		ctx = app.ExitWithParent(ctx)
	}
	return app.Run(ctx, app.Options{Config: c, Stderr: os.Stderr, Version: app.Version()})
}

func runDemo(ctx context.Context, o cli.DemoOptions) error {
	s, err := scenario.Load(deploy.Demo, o.Scenario)
	if errors.Is(err, fs.ErrNotExist) {
		if names, namesErr := scenario.Names(deploy.Demo); namesErr == nil {
			return fmt.Errorf("--scenario %q: there is none of this name; there are %s", o.Scenario, strings.Join(names, ", "))
		}
	}
	if err != nil {
		return fmt.Errorf("reading the scenario: %w", err)
	}
	seed := o.Seed
	if seed == 0 {
		seed = s.Seed
	}
	return demo.Run(ctx, demo.Options{
		Scenario: s, Seed: seed, Dir: o.Dir, Fresh: o.Fresh, Listen: o.Listen, Speed: o.Speed, Out: os.Stdout,
	}, o.Exit)
}
