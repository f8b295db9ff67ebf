package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tocsin-project/tocsin/internal/backtest"
	"github.com/tocsin-project/tocsin/internal/backtest/explain"
	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/scenario/recording"
	"github.com/tocsin-project/tocsin/internal/signal"
)

type explainFlags struct{ service, operation, access, signal, at, output string }

func explainCommand(env Env) *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use: "explain [FOLDER]", Short: "Say where a symptom is and what may have caused it",
		Long: "Answers for one symptom that you name, from what has event time up to --at: which slices explain it, what may have caused it with\n" +
			"reasons and counter-evidence, and how sure that is. From a recording's folder, or without one from ClickHouse.",
		Args: nArgs(0, 1, "one folder at most"),
	}
	config := addConfigFlag(c)
	c.RunE = func(c *cobra.Command, folders []string) error {
		s, err := f.symptom()
		if err != nil {
			return err
		}
		if err := checkOutput(f.output); err != nil {
			return err
		}
		var a *explain.Answer
		if len(folders) == 1 {
			a, err = explainFolder(env, folders[0], s)
		} else {
			a, err = explainStored(c.Context(), env, *config, s)
		}
		if err != nil {
			return err
		}
		if f.output == "json" {
			for i := range a.Suspects { // the shape of a backtest's suspects, which programs know
				a.Suspects[i].Title, a.Suspects[i].URL = "", ""
			}
			return printJSON(env.Stdout, a)
		}
		return printAnswer(env.Stdout, a)
	}
	flags := c.Flags()
	flags.StringVar(&f.service, "service", "", "the service that has the symptom")
	flags.StringVar(&f.operation, "operation", "", "the operation (default: all)")
	flags.StringVar(&f.access, "access", "", "read or write (default: both)")
	flags.StringVar(&f.signal, "signal", "", "failures or latency (default: what departs more)")
	flags.StringVar(&f.at, "at", "", "when it is seen (RFC 3339); what came later is not looked at")
	flags.StringVarP(&f.output, "output", "o", "text", "text or json")
	return c
}

func (f *explainFlags) symptom() (s explain.Symptom, err error) {
	if f.service == "" {
		return s, usageError{errors.New("--service: say which service has the symptom")}
	}
	if f.at == "" {
		return s, usageError{errors.New("--at: say when the symptom is seen, for example 2026-09-13T08:50:00Z")}
	}
	s = explain.Symptom{Service: f.service, Operation: f.operation, Signal: explain.Signal(f.signal)}
	if s.At, err = time.Parse(time.RFC3339Nano, f.at); err != nil {
		return s, usageError{fmt.Errorf("--at %q is no RFC 3339 time, want for example 2026-09-13T08:50:00Z", f.at)}
	}
	if f.access != "" {
		a, err := signal.ParseAccess(f.access)
		if err != nil {
			return s, usageError{fmt.Errorf("--access: %w", err)}
		}
		s.Access = &a
	}
	switch s.Signal {
	case "", explain.Failures, explain.Latency:
	default:
		return s, usageError{fmt.Errorf("--signal is failures or latency, not %q", f.signal)}
	}
	return s, nil
}

// explainFolder reads the events and the catalogue of a recording, and nothing else in it.
func explainFolder(env Env, folder string, s explain.Symptom) (*explain.Answer, error) {
	rec, err := recording.Open(folder)
	if err != nil {
		return nil, err
	}
	cat := catalogue.Empty()
	if rec.Catalogue != "" {
		if cat, err = catalogue.Load(rec.Catalogue); err != nil {
			return nil, err
		}
	}
	p := explain.NewPast(s)
	bad := 0
	for e, err := range rec.All() {
		var line *recording.LineError
		switch {
		case errors.As(err, &line):
			if bad++; bad <= 3 {
				fmt.Fprintln(env.Stderr, err)
			}
		case err != nil:
			return nil, err
		default:
			p.Add(e)
		}
	}
	if bad > 3 {
		fmt.Fprintf(env.Stderr, "%s: %d lines are no event\n", folder, bad)
	}
	return p.Explain(cat)
}

func explainStored(ctx context.Context, env Env, config string, s explain.Symptom) (*explain.Answer, error) {
	st, err := env.stored(ctx, config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = st.Close() }() // only read
	p, err := backtest.Past(ctx, st.History, s)
	if err != nil {
		return nil, err
	}
	return p.Explain(st.Catalogue)
}

func printAnswer(w io.Writer, a *explain.Answer) error {
	fmt.Fprintf(w, "%s\n\n", a.Evidence.Sentence)
	what := "FAILED"
	if a.Evidence.SlowerThanMS != nil {
		what = "SLOW"
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "FROM (UTC)\tREQUESTS\t%s\tSHARE\t\n", what)
	for _, r := range a.Evidence.Table {
		share, mark := "-", ""
		if r.Share != nil {
			share = fmt.Sprintf("%.2f%%", *r.Share*100)
		}
		if a.Evidence.Onset != nil && !r.At.Before(*a.Evidence.Onset) {
			mark = "*"
		}
		fmt.Fprintf(t, "%s%s\t%d\t%d\t%s\t\n", mark, stamp(r.At), r.Requests, r.Bad, share)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nwhere (share of what is beyond the usual)")
	for i, s := range a.Scope {
		if i == 5 {
			break
		}
		name := s.Attributes.String()
		if name == "" {
			name = "everywhere"
		}
		fmt.Fprintf(w, "%2d. %3.0f%%  %s\n", i+1, s.Share*100, name)
	}
	if len(a.Scope) == 0 {
		fmt.Fprintln(w, "    nothing is beyond the usual")
	}
	fmt.Fprintln(w, "\nsuspects")
	printSuspects(w, a.Suspects)
	return nil
}

func printSuspects(w io.Writer, suspects []incident.Suspect) {
	for i, s := range suspects {
		fmt.Fprintf(w, "%2d. %s (%.0f%%)\n", i+1, suspectName(string(s.Kind), s.ID, s.Title), s.Score*100)
		for _, r := range s.Reasons {
			fmt.Fprintf(w, "      + %s\n", r)
		}
		for _, r := range s.Against {
			fmt.Fprintf(w, "      - %s\n", strings.TrimSpace(r))
		}
	}
}
