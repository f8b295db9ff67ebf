package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tocsin-project/tocsin/internal/backtest"
	"github.com/tocsin-project/tocsin/internal/backtest/page"
	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/rules"
)

type backtestFlags struct {
	output, rules, against, routes, restartAt, from, to, config string
	verify                                                      bool
}

func backtestCommand(env Env) *cobra.Command {
	var f backtestFlags
	c := &cobra.Command{
		Use: "backtest [FOLDER...]", Short: "Replay recordings or stored history through the live detector and score them",
		Long: "Replays each folder (events.jsonl, .gz or .zst, with an optional catalogue.yaml, rules/ and labels.yaml), or with --from and --to what\n" +
			"an installation has stored, through the detector that runs live, and says what it would have declared and whom it would have\n" +
			"paged. With --against it says what other rules would have changed.",
		Args: nArgs(0, -1, "folders"),
	}
	flags := c.Flags()
	flags.StringVarP(&f.output, "output", "o", "text", "text, json or html (one page with plots, on standard output); for stored history also log,\na line of JSON for each change of a finding, event of an incident and warning")
	f.addPast(c)
	flags.BoolVar(&f.verify, "verify", false, "compare a replay of stored history with what was said live, byte for byte")
	flags.StringVar(&f.against, "against", "", "folder of other rules to compare with, \"shipped\", or \"live\"; rules that recordings have are left out then")
	flags.StringVar(&f.restartAt, "restart-at", "", "stop and restart the detector at this event time (RFC 3339); the answer must be the same")
	config := addConfigFlag(c)
	c.RunE = func(c *cobra.Command, folders []string) error {
		f.config = *config
		return f.run(c.Context(), env, folders)
	}
	return c
}

// addPast adds the flags of what is replayed, and by which rules and routes.
func (f *backtestFlags) addPast(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.rules, "rules", "", "folder of rules, or \"shipped\" (default: those that Tocsin ships with; for stored history what each tick was judged by,\nwith the catalogue of then)")
	flags.StringVar(&f.routes, "routes", "", "routes file (default: the one that Tocsin ships with, or the installation's)")
	flags.StringVar(&f.from, "from", "", "replay stored history that ended after this event time (RFC 3339)")
	flags.StringVar(&f.to, "to", "", "and up to this one")
}

func (f *backtestFlags) run(ctx context.Context, env Env, folders []string) error {
	stored := f.from != "" || f.to != ""
	switch {
	case !slices.Contains([]string{"text", "json", "html", "log"}, f.output):
		return usageError{fmt.Errorf("--output is text or json, or html for one page with plots, or log, not %q", f.output)}
	case !stored && (f.output == "log" || f.verify):
		return usageError{errors.New("--output log and --verify go with stored history, that is with --from and --to")}
	case f.verify && (f.rules != "" || f.against != ""):
		return usageError{errors.New("--verify holds the replay to what was said live, so it goes without --rules and --against")}
	case f.output == "log" && f.against != "":
		return usageError{errors.New("--output log shows one replay, so it goes without --against")}
	case stored && len(folders) > 0:
		return usageError{errors.New("name folders, or --from and --to for stored history, not both")}
	case stored && f.restartAt != "":
		return usageError{errors.New("--restart-at goes with folders: stored history has the restarts that were")}
	case !stored && len(folders) == 0:
		return usageError{errors.New("tocsin backtest wants at least one folder, or --from and --to; see `tocsin backtest --help`")}
	}
	o, err := f.options(env)
	if err != nil {
		return err
	}
	var replay func(backtest.Options) ([]backtest.Recording, error)
	if stored {
		replay, err = f.storedReplay(ctx, env, &o)
	} else {
		replay, err = folderReplay(ctx, env, folders)
	}
	if err != nil {
		return err
	}
	var result backtest.Result
	if f.against != "" {
		other := o
		if other.AsLive = f.against == live && stored; !other.AsLive {
			if other.Rules, err = loadRules(f.against); err != nil {
				return err
			}
		}
		o.OnlyRules, other.OnlyRules = true, true
		if result.Against, err = replay(other); err != nil {
			return err
		}
	}
	if result.Recordings, err = replay(o); err != nil {
		return err
	}
	result.Sum()
	if f.against != "" {
		result.Changes = backtest.Compare(result.Recordings, result.Against)
	}
	switch f.output {
	case "json":
		err = printJSON(env.Stdout, result)
	case "html":
		err = page.Write(env.Stdout, &result)
	case "log":
		err = printLog(env, result.Recordings)
	default:
		printResult(env.Stdout, &result, f.against != "")
	}
	return cmp.Or(err, unlike(result.Recordings))
}

// live names the rules that were in force.
const live = "live"

// printLog writes all that a replay came to; that it is approximate goes beside it.
func printLog(env Env, recs []backtest.Recording) error {
	w := bufio.NewWriter(env.Stdout)
	enc := json.NewEncoder(w)
	for i := range recs {
		if why := recs[i].Approximate; why != "" {
			fmt.Fprintf(env.Stderr, "approximate: %s\n", why)
		}
		for k := range recs[i].Log {
			if err := enc.Encode(&recs[i].Log[k]); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

// unlike is the error of a comparison that failed.
func unlike(recs []backtest.Recording) error {
	for i := range recs {
		if v := recs[i].Verified; v != nil && v.Different > 0 {
			return fmt.Errorf("%d of %d ticks came to something else than live, the first is tick %d", v.Different, v.Ticks, v.First.Tick)
		}
	}
	return nil
}

// loadRules reads a folder of rules; "" and "shipped" are those that Tocsin ships with.
func loadRules(dir string) (*rule.Set, error) {
	if dir == "" || dir == "shipped" {
		return rule.LoadFS(rules.FS, ".")
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("reading rules: %w", err)
	}
	return rule.LoadFS(os.DirFS(dir), ".")
}

func (f *backtestFlags) options(env Env) (o backtest.Options, err error) {
	if f.restartAt != "" {
		if o.RestartAt, err = time.Parse(time.RFC3339, f.restartAt); err != nil {
			return o, usageError{fmt.Errorf("--restart-at %q is no RFC 3339 time, want for example 2026-09-13T08:43:00Z", f.restartAt)}
		}
	}
	o.Catalogue = catalogue.Empty()
	if o.Rules, err = loadRules(f.rules); err != nil {
		return o, err
	}
	o.Routes, err = env.Routes(f.routes)
	return o, err
}

// span reads --from and --to.
func (f *backtestFlags) span() (from, to time.Time, err error) {
	for _, v := range []struct {
		name, text string
		to         *time.Time
	}{{"--from", f.from, &from}, {"--to", f.to, &to}} {
		if *v.to, err = time.Parse(time.RFC3339, v.text); err != nil {
			return from, to, usageError{fmt.Errorf("%s %q is no RFC 3339 time, want for example 2026-09-13T08:00:00Z; both are needed", v.name, v.text)}
		}
	}
	if !to.After(from) {
		return from, to, usageError{errors.New("--to is not after --from")}
	}
	return from, to, nil
}

func (f *backtestFlags) storedReplay(ctx context.Context, env Env, o *backtest.Options) (func(backtest.Options) ([]backtest.Recording, error), error) {
	from, to, err := f.span()
	if err != nil {
		return nil, err
	}
	st, err := env.stored(ctx, f.config)
	if err != nil {
		return nil, err
	}
	o.Catalogue, o.ExternalLabels, o.Binary, o.Verify = st.Catalogue, st.ExternalLabels, st.Binary, f.verify
	if f.rules == "" {
		o.Rules, o.AsLive = st.Rules, true
	}
	if f.routes == "" {
		o.Routes = st.Routes
	}
	return func(o backtest.Options) ([]backtest.Recording, error) {
		rec, err := backtest.RunStored(ctx, st.History, from, to, o)
		return []backtest.Recording{rec}, err
	}, nil
}

func folderReplay(ctx context.Context, env Env, folders []string) (func(backtest.Options) ([]backtest.Recording, error), error) {
	// Replays take minutes: a folder that is none, or a mistake in a file, is told before the first one.
	var errs []error
	for _, f := range folders {
		errs = append(errs, backtest.Check(f))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	told := map[string]bool{}
	return func(o backtest.Options) ([]backtest.Recording, error) {
		out := make([]backtest.Recording, len(folders))
		bad := make([][]error, len(folders))
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(runtime.GOMAXPROCS(0))
		for i, folder := range folders {
			group.Go(func() (err error) {
				o := o
				o.BadLine = func(err error) { bad[i] = append(bad[i], err) }
				out[i], err = backtest.Run(ctx, folder, o)
				return err
			})
		}
		err := group.Wait()
		for i, folder := range folders {
			if n := len(bad[i]); n > 0 && !told[folder] {
				told[folder] = true
				for _, err := range bad[i][:min(n, 3)] {
					fmt.Fprintln(env.Stderr, err)
				}
				if n > 3 {
					fmt.Fprintf(env.Stderr, "%s: %d lines are no event\n", folder, n)
				}
			}
		}
		return out, err
	}, nil
}
