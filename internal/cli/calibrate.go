package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tocsin-project/tocsin/internal/backtest"
	"github.com/tocsin-project/tocsin/internal/backtest/calibrate"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/rules"
)

type calibrateFlags struct {
	backtestFlags
	names  []string
	most   int
	accept bool
}

func calibrateCommand(env Env) *cobra.Command {
	var f calibrateFlags
	c := &cobra.Command{
		Use: "calibrate [FOLDER...]", Short: "Propose objectives, budgets and windows from the past",
		Long: "Replays recordings, or with --from and --to stored history, with other numbers in the rules, one at a time, and proposes those that\n" +
			"page less for nothing, or sooner, and miss nothing: nothing that labels.yaml names, or that responders took for real. Prints a diff;\n" +
			"with --accept it is written into the rule files.",
		Args: nArgs(0, -1, "folders"),
	}
	flags := c.Flags()
	flags.StringVarP(&f.output, "output", "o", "text", "text, json or diff (the patch alone)")
	f.addPast(c)
	flags.StringArrayVar(&f.names, "rule", nil, "only this rule; may be repeated (default: all that fired)")
	flags.IntVar(&f.most, "max-replays", 60, "replay the past so many times at most")
	flags.BoolVar(&f.accept, "accept", false, "write the changes into the rule files")
	config := addConfigFlag(c)
	c.RunE = func(c *cobra.Command, folders []string) error {
		f.config = *config
		return f.calibrate(c.Context(), env, folders)
	}
	return c
}

func (f *calibrateFlags) calibrate(ctx context.Context, env Env, folders []string) error {
	if f.output != "text" && f.output != "json" && f.output != "diff" {
		return usageError{fmt.Errorf("--output is text, json or diff, not %q", f.output)}
	}
	stored := f.from != "" || f.to != ""
	if stored == (len(folders) > 0) {
		return usageError{errors.New("name folders, or --from and --to for stored history; see `tocsin calibrate --help`")}
	}
	o, err := f.options(env)
	if err != nil {
		return err
	}
	dir := f.rules
	var replay func(backtest.Options) ([]backtest.Recording, error)
	if stored {
		replay, dir, err = f.stored(ctx, env, &o)
	} else {
		replay, err = folderReplay(ctx, env, folders)
	}
	if err != nil {
		return err
	}
	if f.accept && dir == "" {
		return usageError{errors.New("--accept: the rules are those that Tocsin ships with; copy them, name the folder with --rules, and set files.rules to it")}
	}
	o.OnlyRules = true
	plan, err := f.plan(o, dir, replay)
	if err != nil {
		return err
	}
	if f.accept {
		for name, data := range plan.Files {
			if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), data, 0o644); err != nil {
				return fmt.Errorf("writing the rules: %w", err)
			}
		}
	}
	switch f.output {
	case "json":
		return printJSON(env.Stdout, plan)
	case "diff":
		_, err := io.WriteString(env.Stdout, plan.Diff)
		return err
	}
	printPlan(env.Stdout, plan, f.accept)
	return nil
}

// stored is the replay of stored history, and the folder of the rules there.
func (f *calibrateFlags) stored(ctx context.Context, env Env, o *backtest.Options) (func(backtest.Options) ([]backtest.Recording, error), string, error) {
	var dir string
	wrapped := env
	wrapped.Stored = func(ctx context.Context, config string) (*Stored, error) {
		st, err := env.stored(ctx, config)
		if err == nil {
			dir = st.RulesDir
		}
		return st, err
	}
	replay, err := f.storedReplay(ctx, wrapped, o)
	o.AsLive = false // proposals are tried on all of the past
	if f.rules != "" {
		dir = f.rules
	}
	return replay, dir, err
}

func (f *calibrateFlags) plan(o backtest.Options, dir string, replay func(backtest.Options) ([]backtest.Recording, error)) (*calibrate.Plan, error) {
	var source fs.FS = rules.FS
	if dir != "" {
		source = os.DirFS(dir)
	}
	settings, files, err := calibrate.Read(source)
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "tocsin-calibrate-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for rules to try: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // what is left there is of no use
	fired := map[string]bool{}
	try := func(files map[string][]byte) (calibrate.Outcome, bool, error) {
		set, err := loadEdited(scratch, files)
		if err != nil {
			return calibrate.Outcome{}, false, nil //nolint:nilerr // a value that the rule refuses is no candidate
		}
		with := o
		with.Rules = set
		recs, err := replay(with)
		if err != nil {
			return calibrate.Outcome{}, false, err
		}
		if o.Labels == nil && recs[0].Labels != nil {
			o.Labels = recs[0].Labels // what responders said of the incidents that there were; recordings have their own
		}
		r := backtest.Result{Recordings: recs}
		r.Sum()
		for _, x := range r.Rules {
			fired[x.Rule] = true
		}
		return outcome(&r), true, nil
	}
	if _, ok, err := try(files); err != nil || !ok {
		return nil, cmpErr(err, errors.New("the rules as they are cannot be read"))
	}
	settings = slices.DeleteFunc(settings, func(s calibrate.Setting) bool {
		if len(f.names) > 0 {
			return !slices.Contains(f.names, s.Rule)
		}
		return !fired[s.Rule]
	})
	return calibrate.Propose(settings, files, f.most, try)
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// loadEdited reads rules as they would be.
func loadEdited(scratch string, files map[string][]byte) (*rule.Set, error) {
	for name, data := range files {
		at := filepath.Join(scratch, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(at, data, 0o600); err != nil {
			return nil, err
		}
	}
	return rule.LoadFS(os.DirFS(scratch), ".")
}

func outcome(r *backtest.Result) calibrate.Outcome {
	hours := 0.0
	for i := range r.Recordings {
		hours += r.Recordings[i].To.Sub(r.Recordings[i].From).Hours()
	}
	o := calibrate.Outcome{}
	if hours > 0 {
		o.PagesWeek = float64(backtest.Pages(r.Recordings)) / hours * 24 * 7
	}
	if s := r.Total; s != nil {
		o.Detected, o.Labels, o.Delay = s.Detected, s.Labels, s.DelaySeconds
		if s.FalsePagesWeek != nil {
			o.FalsePagesWeek = *s.FalsePagesWeek
		}
	} else {
		o.FalsePagesWeek = o.PagesWeek // nobody said that any of them was real
	}
	return o
}

func printPlan(w io.Writer, p *calibrate.Plan, accepted bool) {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "RULE\tSETTING\tNOW\tPROPOSED\tPAGES A WEEK\tFALSE\tDETECTED\tDELAY")
	line := func(rule, field, now, proposed string, o calibrate.Outcome) {
		delay := "-"
		if o.Delay != nil {
			delay = (time.Duration(*o.Delay) * time.Second).String()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.1f\t%.1f\t%d of %d\t%s\n", rule, field, now, proposed, o.PagesWeek, o.FalsePagesWeek, o.Detected, o.Labels, delay)
	}
	line("as it is", "", "", "", p.Now)
	for i := range p.Proposals {
		x := &p.Proposals[i]
		line(x.Rule, x.Field, x.Value, x.New, x.Outcome)
	}
	if p.Together != nil {
		line("all together", "", "", "", *p.Together)
	}
	_ = t.Flush()
	fmt.Fprintf(w, "\n%d replays", p.Tried)
	if p.Skipped > 0 {
		fmt.Fprintf(w, ", %d values not tried: --max-replays", p.Skipped)
	}
	fmt.Fprintln(w)
	switch {
	case p.Together == nil:
		fmt.Fprintln(w, "nothing better was found")
	case accepted:
		fmt.Fprintf(w, "written:\n%s", p.Diff)
	default:
		fmt.Fprintf(w, "--accept would write:\n%s", p.Diff)
	}
}
