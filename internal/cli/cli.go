// Package cli is the command line, in the manner of promtool and amtool. It parses, calls and prints; what needs
// the wired application (run, demo) is handed in, because only the application knows the adapters.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tocsin-project/tocsin/internal/detect/ruletest"
	"github.com/tocsin-project/tocsin/internal/respond/route"
)

// Env is what the command line needs of the program around it.
type Env struct {
	Stdout, Stderr io.Writer
	Version        string
	// Run runs the daemon until ctx ends.
	Run func(ctx context.Context, o RunOptions) error
	// Demo runs the demo until it is over or ctx ends.
	Demo func(ctx context.Context, o DemoOptions) error
	// CheckConfig reads a daemon's configuration and everything it names, and says what it found.
	CheckConfig func(file string) ([]string, error)
	// CheckQueries asks the configuration's database what it makes of the queries of sql rules, without running them.
	CheckQueries func(ctx context.Context, file string) ([]string, error)
	// Stored opens the history that an installation has stored.
	Stored func(ctx context.Context, configFile string) (*Stored, error)
	// Rewind makes a topic be read again, or says what it would do.
	Rewind func(ctx context.Context, o RewindOptions) ([]Rewound, error)
	// Respond stands for the respond loop in tests of rules and routes; nil: tests that look at notifications fail.
	Respond func(ruletest.Rehearsal) (ruletest.Responder, error)
	// Routes reads a routes file, or with "" the shipped one.
	Routes func(file string) (*route.Config, error)
}

// RunOptions are the flags of `tocsin run`.
type RunOptions struct {
	Config string
	// ExitWithParent ends the daemon when its standard input does.
	ExitWithParent bool
}

// DemoOptions are the flags of `tocsin demo`.
type DemoOptions struct {
	Scenario string
	Seed     int64
	Exit     bool
	Dir      string  // where Kafka, ClickHouse and the outbox keep their files; "" is a folder in the user's cache
	Speed    float64 // virtual seconds per second; 0 is as fast as Tocsin keeps up
	Listen   string
	Fresh    bool // begin with empty folders
}

// errSilent ends with status 1 when everything has been said already.
var errSilent = errors.New("")

// Execute runs the command line and returns the exit status: 0, 1 for what went wrong, 2 for a wrong call.
func Execute(ctx context.Context, env Env, args []string) int {
	root := newRoot(env)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errSilent):
		return 1
	}
	fmt.Fprintln(env.Stderr, "tocsin: "+err.Error())
	var usage usageError
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}

type usageError struct{ error }

func newRoot(env Env) *cobra.Command {
	root := &cobra.Command{
		Use:           "tocsin",
		Short:         "Tocsin declares high-impact incidents and says what probably caused them",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       env.Version,
	}
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see `%s --help`", err, c.CommandPath())}
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	// The list is the table of contents of the manual.
	root.AddCommand(
		runCommand(env),
		demoCommand(env),
		checkCommand(env),
		testCommand(env),
		pipelineCommand(env),
		ingestCommand(env),
		backtestCommand(env),
		explainCommand(env),
		calibrateCommand(env),
		incidentCommand(env),
		whyCommand(env),
		silenceCommand(env),
		drillCommand(env),
	)
	group(root)
	for _, c := range root.Commands() {
		if c.HasSubCommands() {
			group(c)
		}
	}
	return root
}

func runCommand(env Env) *cobra.Command {
	var o RunOptions
	c := &cobra.Command{
		Use: "run", Short: "Run the daemon: ingest, detect, respond", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return env.Run(c.Context(), o) },
	}
	c.Flags().StringVar(&o.Config, "config.file", "tocsin.yaml", "configuration file")
	c.Flags().BoolVar(&o.ExitWithParent, "exit-with-parent", false, "end when standard input does, for a parent that may be killed")
	return c
}

func demoCommand(env Env) *cobra.Command {
	var o DemoOptions
	c := &cobra.Command{
		Use: "demo", Short: "Replay an incident through embedded Kafka and ClickHouse and show what Tocsin does", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.Speed < 0 {
				return usageError{fmt.Errorf("--speed %g: want a number above 0, or none for as fast as Tocsin keeps up", o.Speed)}
			}
			return env.Demo(c.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Scenario, "scenario", "2026-09-13", "name of a scenario that Tocsin ships with, or a file")
	f.Int64Var(&o.Seed, "seed", 0, "seed of the scenario's chance (default: the scenario's own)")
	f.BoolVar(&o.Exit, "exit", false, "end after the summary instead of leaving the console up")
	f.StringVar(&o.Dir, "dir", "", "folder of the demo's Kafka, ClickHouse and outbox (default: in the user's cache)")
	f.Float64Var(&o.Speed, "speed", 0, "how many times faster than real time (default: as fast as Tocsin keeps up)")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:9460", "address of the console, on loopback")
	f.BoolVar(&o.Fresh, "fresh", true, "begin with empty folders; false goes on where an earlier demo was stopped")
	return c
}

// group prepares a command that only holds others: alone it shows what it holds, and a word that is none of them is a
// wrong call. Cobra by itself shows the help and ends with 0, so that a script never learns of a typing error.
func group(c *cobra.Command) {
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		text := fmt.Sprintf("no command %q", args[0])
		if c.HasParent() {
			text = fmt.Sprintf("%s has no command %q", c.CommandPath(), args[0])
		}
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			text += ", perhaps you mean " + strings.Join(near, " or ")
		}
		return usageError{fmt.Errorf("%s; see `%s --help`", text, c.CommandPath())}
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.SuggestionsMinimumDistance = 2
}

// noArgs is cobra.NoArgs with our exit status.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no argument, got %q", c.CommandPath(), args[0])}
	}
	return nil
}

// nArgs wants between least and most arguments; most < 0 is any number.
func nArgs(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return usageError{fmt.Errorf("%s wants %s; see `%s --help`", c.CommandPath(), what, c.CommandPath())}
		}
		return nil
	}
}

func checkOutput(format string) error {
	if format != "text" && format != "json" {
		return usageError{fmt.Errorf("--output is text or json, not %q", format)}
	}
	return nil
}
