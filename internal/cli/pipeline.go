package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tocsin-project/tocsin/internal/ingest/decode"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/pipelines"
)

func pipelineCommand(env Env) *cobra.Command {
	c := &cobra.Command{Use: "pipeline", Short: "See what pipelines make of records"}
	var at, output string
	try := &cobra.Command{
		Use: "try FILE RECORD", Short: "Show the events that come out of a captured record, and why", Args: nArgs(2, 2, "a pipeline and a record"),
		Long: "Reads the file RECORD, or standard input for -, as one record's value, decodes it as the pipeline says, and shows the events and\n" +
			"dead letters that come out, for requests with what decided operation, access and outcome. FILE is a pipeline's file, or the name of\n" +
			"one that Tocsin ships with, such as telemetry.yaml.",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			var when time.Time
			if at != "" {
				var err error
				if when, err = time.Parse(time.RFC3339, at); err != nil {
					return usageError{fmt.Errorf("--time %q is not a time of RFC 3339", at)}
				}
			}
			return tryPipeline(env.Stdout, args[0], args[1], when, output == "json")
		},
	}
	try.Flags().StringVar(&at, "time", "", "the record's timestamp (default: the time of its newest event)")
	try.Flags().StringVar(&output, "output", "text", "text or json")
	c.AddCommand(try)
	return c
}

func tryPipeline(out io.Writer, file, record string, at time.Time, asJSON bool) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if shipped, shippedErr := fs.ReadFile(pipelines.FS, file); shippedErr == nil {
			text, err = shipped, nil
		}
	}
	if err != nil {
		return fmt.Errorf("reading the pipeline: %w", err)
	}
	p, err := pipeline.Parse(file, text)
	if err != nil {
		return err
	}
	from := io.Reader(os.Stdin)
	if record != "-" {
		f, err := os.Open(record)
		if err != nil {
			return fmt.Errorf("reading the record: %w", err)
		}
		defer f.Close()
		from = f
	}
	value, err := io.ReadAll(io.LimitReader(from, int64(pipeline.MaxRecordLimit)+1))
	if err != nil {
		return fmt.Errorf("reading the record: %w", err)
	}
	got, err := decode.Try(p, value, at)
	if err != nil {
		return err
	}
	if asJSON {
		return printTriedJSON(out, got)
	}
	fmt.Fprintf(out, "record of %d bytes at %s, %s\n", len(value), got.Time.UTC().Format(time.RFC3339), p.Decoder)
	for _, e := range got.Events {
		fmt.Fprintf(out, "event  %s\n", e.Event)
		for _, why := range e.Why {
			fmt.Fprintf(out, "       %s\n", why)
		}
	}
	for _, e := range got.Dropped {
		fmt.Fprintf(out, "drop   %s\n       %s\n", e.Event, strings.Join(e.Why, "\n       "))
	}
	for _, l := range got.Letters {
		fmt.Fprintf(out, "dead   %s: %s\n", l.Reason, l.Detail)
	}
	fmt.Fprintf(out, "%d events, %d dead letters", len(got.Events), len(got.Letters))
	if len(got.Dropped) > 0 {
		fmt.Fprintf(out, ", %d dropped", len(got.Dropped))
	}
	fmt.Fprintln(out)
	return nil
}

func printTriedJSON(out io.Writer, got decode.Tried) error {
	type event struct {
		Event json.RawMessage `json:"event"`
		Why   []string        `json:"why,omitempty"`
	}
	type letter struct {
		Reason string `json:"reason"`
		Detail string `json:"detail"`
	}
	v := struct {
		Time    time.Time `json:"time"`
		Events  []event   `json:"events"`
		Dropped []event   `json:"dropped"`
		Dead    []letter  `json:"dead_letters"`
	}{got.Time.UTC(), []event{}, []event{}, []letter{}}
	for _, e := range got.Events {
		v.Events = append(v.Events, event{json.RawMessage(e.Event), e.Why})
	}
	for _, e := range got.Dropped {
		v.Dropped = append(v.Dropped, event{json.RawMessage(e.Event), e.Why})
	}
	for _, l := range got.Letters {
		v.Dead = append(v.Dead, letter{l.Reason, l.Detail})
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
