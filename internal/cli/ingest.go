package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// RewindOptions are the flags of `tocsin ingest rewind`.
type RewindOptions struct {
	Config    string
	Topic     string
	Partition int32     // -1 is all
	Offset    int64     // -1 where Time says it
	Time      time.Time // record timestamp
	By        string
	Reason    string
	Really    bool // else only the plan is wanted
}

// Rewound is what a rewind does to one partition.
type Rewound struct {
	Partition int32
	From, To  int64  // offsets: read up to, to be read again from
	Skipped   string // why it is left alone, "" if it is not
}

func ingestCommand(env Env) *cobra.Command {
	c := &cobra.Command{Use: "ingest", Short: "Work on what is read from Kafka"}
	c.AddCommand(rewindCommand(env))
	return c
}

func rewindCommand(env Env) *cobra.Command {
	o := RewindOptions{Partition: -1}
	var to string
	c := &cobra.Command{
		Use: "rewind", Short: "Read a topic again from an offset or a time on", Args: noArgs,
		Long: "Makes the daemon read a topic again when it is started the next time. Everything that was counted from there on is counted again:\n" +
			"requests and gauges twice, in every table that is kept; tickets, changes and alerts once, because they have ids. It is for what was\n" +
			"not counted at all, such as records that a wrong pipeline refused, and for a store that lost its tables. All daemons must have been\n" +
			"stopped. Without --yes it says what it would do.",
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case o.Topic == "":
				return usageError{errors.New("--topic is required")}
			case to == "":
				return usageError{errors.New("--to is required: an offset, or a time of RFC 3339")}
			case o.Really && o.Reason == "":
				return usageError{errors.New("--reason is required: it is recorded in ingest_rewinds")}
			}
			if n, err := strconv.ParseInt(to, 10, 64); err == nil && n >= 0 {
				o.Offset = n
			} else if o.Time, err = time.Parse(time.RFC3339, to); err == nil {
				o.Offset = -1
			} else {
				return usageError{fmt.Errorf("--to %q is neither an offset nor a time of RFC 3339", to)}
			}
			return rewind(c.Context(), env, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Config, "config.file", "tocsin.yaml", "configuration file of the daemon")
	f.StringVar(&o.Topic, "topic", "", "topic to read again")
	f.Int32Var(&o.Partition, "partition", -1, "one partition (default: all)")
	f.StringVar(&to, "to", "", "offset, or time of the first record to read again")
	f.StringVar(&o.By, "by", "", "who does it (default: the user's name)")
	f.StringVar(&o.Reason, "reason", "", "why, for ingest_rewinds")
	f.BoolVar(&o.Really, "yes", false, "do it")
	return c
}

func rewind(ctx context.Context, env Env, o RewindOptions) error {
	done, err := env.Rewind(ctx, o)
	again := int64(0)
	for _, r := range done {
		if r.Skipped != "" {
			fmt.Fprintf(env.Stdout, "%s/%d  left alone: %s\n", o.Topic, r.Partition, r.Skipped)
			continue
		}
		again += r.From - r.To
		fmt.Fprintf(env.Stdout, "%s/%d  read up to %d, again from %d: %d offsets\n", o.Topic, r.Partition, r.From, r.To, r.From-r.To)
	}
	if err != nil {
		return err
	}
	if again == 0 {
		fmt.Fprintln(env.Stdout, "Nothing was done, and there is nothing to do.")
		return errSilent
	}
	if !o.Really {
		fmt.Fprintf(env.Stdout, "Nothing was done. With --yes the records at %d offsets are read again: their requests and gauges count twice.\n", again)
		return errSilent
	}
	fmt.Fprintln(env.Stdout, "Done. Start the daemon.")
	return nil
}
