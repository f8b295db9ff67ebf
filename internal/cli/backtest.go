package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tocsin-project/tocsin/internal/backtest"
	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/rules"
)

func backtestCommand(env Env) *cobra.Command {
	var output, rulesDir, routesFile, restartAt string
	c := &cobra.Command{
		Use: "backtest FOLDER...", Short: "Replay recordings through the live detector and score them",
		Long: "Replays each folder (events.jsonl, .gz or .zst, with an optional catalogue.yaml, rules/ and labels.yaml) through the detector that\n" +
			"runs live, and says what it would have declared and whom it would have paged.",
		Args: nArgs(1, -1, "at least one folder"),
		RunE: func(c *cobra.Command, folders []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			o, err := backtestOptions(env, rulesDir, routesFile, restartAt)
			if err != nil {
				return err
			}
			// Replays take minutes: a folder that is none, or a mistake in a file, is told before the first one.
			var errs []error
			for _, f := range folders {
				errs = append(errs, backtest.Check(f))
			}
			if err := errors.Join(errs...); err != nil {
				return err
			}
			return runBacktest(c.Context(), env, folders, o, output)
		},
	}
	f := c.Flags()
	f.StringVarP(&output, "output", "o", "text", "text or json")
	f.StringVar(&rulesDir, "rules", "", "folder of rules (default: those that Tocsin ships with)")
	f.StringVar(&routesFile, "routes", "", "routes file (default: the one that Tocsin ships with)")
	f.StringVar(&restartAt, "restart-at", "", "stop and restart the detector at this event time (RFC 3339); the answer must be the same")
	return c
}

func backtestOptions(env Env, rulesDir, routesFile, restartAt string) (o backtest.Options, err error) {
	if restartAt != "" {
		if o.RestartAt, err = time.Parse(time.RFC3339, restartAt); err != nil {
			return o, usageError{fmt.Errorf("--restart-at %q is no RFC 3339 time, want for example 2026-09-13T08:43:00Z", restartAt)}
		}
	}
	o.Catalogue = catalogue.Empty()
	if rulesDir == "" {
		o.Rules, err = rule.LoadFS(rules.FS, ".")
	} else {
		if _, err := os.Stat(rulesDir); err != nil {
			return o, fmt.Errorf("reading rules: %w", err)
		}
		o.Rules, err = rule.LoadFS(os.DirFS(rulesDir), ".")
	}
	if err != nil {
		return o, err
	}
	o.Routes, err = env.Routes(routesFile)
	return o, err
}

func runBacktest(ctx context.Context, env Env, folders []string, o backtest.Options, output string) error {
	result := backtest.Result{Recordings: []backtest.Recording{}}
	for i, folder := range folders {
		bad := 0
		o.BadLine = func(err error) {
			if bad++; bad <= 3 {
				fmt.Fprintln(env.Stderr, err)
			}
		}
		rec, err := backtest.Run(ctx, folder, o)
		if err != nil {
			return err
		}
		if bad > 3 {
			fmt.Fprintf(env.Stderr, "%s: %d lines are no event\n", folder, bad)
		}
		result.Recordings = append(result.Recordings, rec)
		if output == "text" {
			if i > 0 {
				fmt.Fprintln(env.Stdout)
			}
			printBacktest(env.Stdout, rec)
		}
	}
	if output == "json" {
		return printJSON(env.Stdout, result)
	}
	return nil
}

func printBacktest(w io.Writer, rec backtest.Recording) {
	fmt.Fprintf(w, "%s  %s – %s\n", rec.Name, stamp(rec.From), stamp(rec.To))
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, x := range rec.Warnings {
		exhausted := ""
		if x.ExhaustedAt != nil {
			exhausted = "exhausted at about " + stamp(*x.ExhaustedAt)
		}
		fmt.Fprintf(t, "  %s\twarning\t%s %s\t%s\n", stamp(x.At), x.Resource, x.Metric, exhausted)
	}
	_ = t.Flush()
	for _, in := range rec.Incidents {
		fmt.Fprintf(w, "  %s  %s  [%s, %s]  %s\n", when(in.StartedAt), in.ID, in.Severity, in.State, in.Title)
		fmt.Fprintf(w, "      declared %s, resolved %s, %d services, %d failed requests, at least %d accounts, %d tickets\n",
			when(in.DeclaredAt), when(in.ResolvedAt), len(in.Services), in.Impact.Failures, in.Impact.AccountsAtLeast, in.Tickets)
		for _, p := range in.Pages {
			fmt.Fprintf(w, "      page %s to %s [%s]: %s\n", stamp(p.At), p.Receiver, p.Severity, p.Reason)
		}
		for i, s := range in.Suspects {
			if i == 3 {
				break
			}
			fmt.Fprintf(w, "      suspect %d: %s (%.0f%%)\n", i+1, suspectName(string(s.Kind), s.ID, ""), s.Score*100)
		}
	}
	if len(rec.Incidents) == 0 {
		fmt.Fprintln(w, "  no incident")
	}
	firing := 0
	for _, f := range rec.Findings {
		if f.State == incident.Firing {
			firing++
		}
	}
	fmt.Fprintf(w, "  %d findings fired\n", firing)
	if s := rec.Score; s != nil {
		fmt.Fprintf(w, "  score: %d of %d labels declared, %d declared incidents of which %d in quiet hours (%.1f h), %d false pages",
			s.Detected, s.Labels, s.Declared, s.FalseIncidents, s.QuietHours, s.FalsePages)
		if s.DelaySeconds != nil {
			fmt.Fprintf(w, ", median delay %s", time.Duration(*s.DelaySeconds)*time.Second)
		}
		if s.Causes > 0 {
			fmt.Fprintf(w, ", cause first in %d of %d", s.CauseFirst, s.Causes)
		}
		fmt.Fprintln(w)
	}
}

func when(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return stamp(*t)
}
