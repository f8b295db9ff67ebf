package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tocsin-project/tocsin/internal/console"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond/silence"
)

func incidentCommand(env Env) *cobra.Command {
	c := &cobra.Command{Use: "incident", Short: "List and show incidents, and tell Tocsin about them"}
	base := addClientFlags(c)
	c.AddCommand(incidentList(env, base), incidentShow(env, base))
	for _, v := range []struct {
		cmd   incident.CommandType
		short string
	}{
		{incident.CommandAcknowledge, "Say that somebody works on it"},
		{incident.CommandMitigate, "Say that customers are served again"},
		{incident.CommandResolve, "End it"},
		{incident.CommandDismiss, "Say that it was no incident"},
		{incident.CommandReopen, "Open it again"},
		{incident.CommandMerge, "Say that it is part of another one"},
	} {
		c.AddCommand(incidentOrder(env, base, v.cmd, v.short))
	}
	return c
}

func incidentList(env Env, base *string) *cobra.Command {
	var all bool
	var output string
	c := &cobra.Command{
		Use: "list", Short: "List open incidents, or all", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			path := "/api/v1/incidents"
			if all {
				path += "?state=all"
			}
			var list []incident.Incident
			if err := newClient(*base).get(c.Context(), path, &list); err != nil {
				return err
			}
			if output == "json" {
				return printJSON(env.Stdout, list)
			}
			if len(list) == 0 {
				if all {
					fmt.Fprintln(env.Stdout, "no incident")
				} else {
					fmt.Fprintln(env.Stdout, "no open incident; --all lists those that ended, too")
				}
				return nil
			}
			t := tabwriter.NewWriter(env.Stdout, 0, 4, 2, ' ', 0)
			fmt.Fprintln(t, "ID\tSTATE\tSEVERITY\tBEGAN (UTC)\tSERVICES\tTITLE")
			for _, in := range list {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", in.ID, in.State, in.Severity, stamp(in.StartedAt), len(in.Services), in.Title)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&all, "all", false, "those that ended too")
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

func incidentShow(env Env, base *string) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "show ID", Short: "Show one incident", Args: nArgs(1, 1, "the id of an incident"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			var a console.IncidentAnswer
			if err := newClient(*base).get(c.Context(), "/api/v1/incidents/"+url.PathEscape(args[0]), &a); err != nil {
				return err
			}
			if output == "json" {
				return printJSON(env.Stdout, a)
			}
			printIncident(env.Stdout, a.Incident)
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

func incidentOrder(env Env, base *string, cmd incident.CommandType, short string) *cobra.Command {
	var by, note, into string
	c := &cobra.Command{
		Use: string(cmd) + " ID", Short: short, Args: nArgs(1, 1, "the id of an incident"),
		RunE: func(c *cobra.Command, args []string) error {
			if by == "" {
				return usageError{errors.New("--by: say who you are")}
			}
			if cmd == incident.CommandMerge && into == "" {
				return usageError{errors.New("--into: say which incident it is part of")}
			}
			var answer map[string]string
			body := map[string]string{"by": by, "note": note, "into": into}
			if err := newClient(*base).post(c.Context(), "/api/v1/incidents/"+url.PathEscape(args[0])+"/"+string(cmd), body, &answer); err != nil {
				return err
			}
			fmt.Fprintf(env.Stdout, "%s %s: %s\n", cmd, args[0], answer["status"])
			return nil
		},
	}
	c.Flags().StringVar(&by, "by", "", "who orders this")
	c.Flags().StringVar(&note, "note", "", "why, for the log")
	if cmd == incident.CommandMerge {
		c.Flags().StringVar(&into, "into", "", "the id of the incident that goes on")
	}
	return c
}

// whyCommand answers "why did (not) this page?".
func whyCommand(env Env) *cobra.Command {
	c := &cobra.Command{
		Use: "why ID", Short: "Say why an incident did, or did not, page", Args: nArgs(1, 1, "the id of an incident"),
	}
	base := addClientFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		var a console.IncidentAnswer
		if err := newClient(*base).get(c.Context(), "/api/v1/incidents/"+url.PathEscape(args[0]), &a); err != nil {
			return err
		}
		printWhy(env.Stdout, a)
		return nil
	}
	return c
}

func printWhy(w io.Writer, a console.IncidentAnswer) {
	fmt.Fprintf(w, "%s  %s\n%s, %s: %s\n\n", a.Incident.ID, a.Incident.Title, a.Incident.Severity, a.Incident.State, a.Incident.Reason)
	switch {
	case a.Incident.Muted != "":
		fmt.Fprintf(w, "It pages nobody now: %s.\n\n", a.Incident.Muted)
	case !a.Incident.Page && a.Incident.DeclaredAt.IsZero():
		fmt.Fprint(w, "It was never declared, so it paged nobody.\n\n")
	}
	for _, s := range a.Silences {
		fmt.Fprintln(w, silenceText(s))
	}
	if len(a.Silences) > 0 {
		fmt.Fprintln(w)
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, e := range a.Events {
		fmt.Fprintf(t, "%s\t%s\t%s\n", stamp(e.At), e.Type, e.Reason) // a person's word says in its reason whose it is
	}
	_ = t.Flush()
	printEvidence(w, a.Incident.Findings)
	if len(a.Deliveries) == 0 {
		fmt.Fprintln(w, "\nNothing was sent to anybody.")
		return
	}
	fmt.Fprintln(w, "\nSent (times by the wall clock):")
	for _, d := range a.Deliveries {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", stamp(d.At), d.Receiver, d.Action, d.Outcome, d.Detail)
	}
	_ = t.Flush()
}

// shownTables bounds the findings whose evidence is shown.
const shownTables = 5

// printEvidence shows what findings that judge by evidence rest on, over time.
func printEvidence(w io.Writer, findings []incident.Attached) {
	shown := 0
	for i := range findings {
		f := &findings[i].Finding
		if len(f.Evidence) == 0 || shown == shownTables {
			continue
		}
		shown++
		fmt.Fprintf(w, "\n%s, %s: %s\n", f.Rule, f.State, f.Explain)
		t := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
		of := ""
		fmt.Fprintln(t, "MINUTES BEFORE\tALL\tBAD\tNORMAL UP TO\tEVIDENCE\t")
		for _, r := range f.Evidence {
			if r.Of != of {
				of = r.Of
				fmt.Fprintf(t, "%s\t\t\t\t\t\n", of)
			}
			fmt.Fprintf(t, "%d-%d\t%d\t%d\t%.3g\t%+.1f\t\n", r.From, r.To, r.N, r.F, r.Tolerated, r.Evidence)
		}
		_ = t.Flush()
	}
}

// silenceText says what a silence means for an incident.
func silenceText(s console.SilenceAnswer) string {
	text := "It was silenced until " + stamp(s.EndsAt)
	switch {
	case s.Status == silence.Active:
		text = "It is silenced: nothing new is told before " + stamp(s.EndsAt)
	case s.Status == silence.Pending:
		text = "It will be silenced from " + stamp(s.StartsAt) + " to " + stamp(s.EndsAt)
	case s.ExpiredBy != "":
		text += ", when " + s.ExpiredBy + " ended that"
	}
	return fmt.Sprintf("%s UTC. Silence %s by %s: %s (%s)", text, s.ID, s.CreatedBy, s.Comment, strings.Join(s.Matchers, " "))
}

// drillTimeout is above what a drill takes that has to give up on a place and close the others.
const drillTimeout = time.Minute

func drillCommand(env Env) *cobra.Command {
	c := &cobra.Command{Use: "drill", Short: "Send a page marked TEST end to end, and close it", Args: noArgs}
	base := addClientFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		var answer map[string]string
		client := newClient(*base)
		client.http.Timeout = drillTimeout
		if err := client.post(c.Context(), "/api/v1/drill", nil, &answer); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, answer["report"])
		return nil
	}
	return c
}

func printIncident(w io.Writer, in incident.Incident) {
	fmt.Fprintf(w, "%s  [%s, %s]  %s\n%s\n\n", in.ID, in.Severity, in.State, in.Title, in.Reason)
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(t, "began\t%s\n", stamp(in.StartedAt))
	for _, v := range []struct {
		name string
		at   time.Time
	}{{"declared", in.DeclaredAt}, {"acknowledged", in.AcknowledgedAt}, {"mitigated", in.MitigatedAt}, {"resolved", in.ResolvedAt}} {
		if !v.at.IsZero() {
			fmt.Fprintf(t, "%s\t%s\n", v.name, stamp(v.at))
		}
	}
	fmt.Fprintf(t, "requests\t%d failed of %d on %d paths in %d services\n", in.Impact.Failures, in.Impact.Requests, len(in.Paths), len(in.Services))
	fmt.Fprintf(t, "customers\tat least %d, %d tickets\n", in.Impact.AccountsAtLeast, in.Tickets)
	fmt.Fprintf(t, "services\t%s\n", strings.Join(in.Services, ", "))
	_ = t.Flush()
	fmt.Fprintln(w, "\nsuspects")
	for i, s := range in.Suspects {
		fmt.Fprintf(w, "%2d. %s (%.0f%%)\n", i+1, suspectName(string(s.Kind), s.ID, s.Title), s.Score*100)
		for _, r := range s.Reasons {
			fmt.Fprintf(w, "      + %s\n", r)
		}
		for _, r := range s.Against {
			fmt.Fprintf(w, "      - %s\n", r)
		}
	}
}

// suspectName is what a suspect is called in text.
func suspectName(kind, id, title string) string {
	switch {
	case kind == string(incident.SuspectUnknown):
		return "no cause known"
	case title == "" || title == id:
		return kind + " " + id
	}
	return kind + " " + id + "  " + title
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
