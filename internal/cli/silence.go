package cli

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/user"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tocsin-project/tocsin/internal/console"
)

// silenceCommand has amtool's habits: `silence add`, `silence list` (or query), `silence expire`.
func silenceCommand(env Env) *cobra.Command {
	c := &cobra.Command{Use: "silence", Short: "Keep incidents from being told anew for a while"}
	base := addClientFlags(c)
	c.AddCommand(silenceAdd(env, base), silenceList(env, base), silenceExpire(env, base))
	return c
}

// author is who runs the command, unless a flag says otherwise.
func author() string {
	if u, err := user.Current(); err == nil && u.Username != "root" {
		return u.Username
	}
	return os.Getenv("SUDO_USER")
}

func silenceAdd(env Env, base *string) *cobra.Command {
	var o console.SilenceOrder
	var start, end, output string
	c := &cobra.Command{
		Use: "add MATCHER...", Short: "Silence incidents whose labels match", Args: nArgs(1, -1, "matchers such as service=issues or severity=~\"minor|major\""),
		Long: `Silence incidents whose labels match all matchers. Nothing new is told about them while the silence lasts: what was opened
is still closed, and what is open and may page when it ends is paged then. Labels are severity, state, service, area,
resource, team, alertname and those of the rule; ` + "`tocsin incident show -o json`" + ` lists them.`,
		Example: `  tocsin silence add service=issues severity=~"minor|major" --duration 2h --comment "moving the database"`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			var err error
			if o.StartsAt, err = moment("--start", start); err != nil {
				return err
			}
			if o.EndsAt, err = moment("--end", end); err != nil {
				return err
			}
			switch {
			case end != "" && c.Flags().Changed("duration"):
				return usageError{errors.New("give --duration or --end, not both")}
			case end != "":
				o.Duration = ""
			}
			if o.By == "" {
				return usageError{errors.New("--author: say who you are")}
			}
			if o.Comment == "" {
				return usageError{errors.New("--comment: say why")}
			}
			o.Matchers = args
			var s console.SilenceAnswer
			if err := newClient(*base).post(c.Context(), "/api/v1/silences", o, &s); err != nil {
				return err
			}
			if output == "json" {
				return printJSON(env.Stdout, s)
			}
			fmt.Fprintln(env.Stdout, s.ID)
			fmt.Fprintf(env.Stderr, "%s until %s UTC\n", s.Status, stamp(s.EndsAt))
			return nil
		},
	}
	f := c.Flags()
	f.StringVarP(&o.Duration, "duration", "d", "1h", "for how long: 30m, 2h, 1d")
	f.StringVar(&start, "start", "", "when it begins, RFC 3339 (default: now)")
	f.StringVar(&end, "end", "", "when it ends, RFC 3339, instead of --duration")
	f.StringVarP(&o.By, "author", "a", author(), "who asks for it")
	f.StringVarP(&o.Comment, "comment", "c", "", "why, for everybody who wonders")
	f.StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

func moment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, usageError{fmt.Errorf("%s %q: want a time such as 2026-09-13T08:30:00Z", flag, text)}
	}
	return t, nil
}

func silenceList(env Env, base *string) *cobra.Command {
	var all bool
	var output string
	c := &cobra.Command{
		Use: "list", Aliases: []string{"query"}, Short: "List silences that have not ended, or all of the last month", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			path := "/api/v1/silences"
			if all {
				path += "?state=all"
			}
			var list []console.SilenceAnswer
			if err := newClient(*base).get(c.Context(), path, &list); err != nil {
				return err
			}
			if output == "json" {
				return printJSON(env.Stdout, list)
			}
			if len(list) == 0 {
				fmt.Fprintln(env.Stdout, "no silence")
				return nil
			}
			t := tabwriter.NewWriter(env.Stdout, 0, 4, 2, ' ', 0)
			fmt.Fprintln(t, "ID\tSTATUS\tMATCHERS\tFROM (UTC)\tUNTIL (UTC)\tBY\tWHY")
			for _, s := range list {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.ID, s.Status, strings.Join(s.Matchers, " "), stamp(s.StartsAt), stamp(s.EndsAt), s.CreatedBy, why(s))
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&all, "all", false, "those that ended too, with who ended them")
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

func why(s console.SilenceAnswer) string {
	if s.ExpiredBy != "" {
		return s.Comment + " (ended by " + s.ExpiredBy + ")"
	}
	return s.Comment
}

func silenceExpire(env Env, base *string) *cobra.Command {
	var by string
	c := &cobra.Command{
		Use: "expire ID...", Short: "End silences now", Args: nArgs(1, -1, "the ids of silences"),
		RunE: func(c *cobra.Command, args []string) error {
			if by == "" {
				return usageError{errors.New("--author: say who you are")}
			}
			var errs []error
			for _, id := range args {
				var s console.SilenceAnswer
				if err := newClient(*base).post(c.Context(), "/api/v1/silences/"+url.PathEscape(id)+"/expire", map[string]string{"by": by}, &s); err != nil {
					errs = append(errs, fmt.Errorf("silence %s: %w", id, err))
					continue
				}
				fmt.Fprintf(env.Stdout, "%s %s\n", s.ID, s.Status)
			}
			return errors.Join(errs...)
		},
	}
	c.Flags().StringVarP(&by, "author", "a", author(), "who ends them")
	return c
}
