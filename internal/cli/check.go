package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func checkCommand(env Env) *cobra.Command {
	var config string
	var database bool
	c := &cobra.Command{
		Use: "check", Short: "Read the configuration and every file it names, and report all mistakes", Args: noArgs,
		Long: "Reads the configuration with its pipelines, rules, routes and catalogue as the daemon would, and prints every mistake as\n" +
			"file:line:col. Without --config.file it checks what Tocsin ships with. With --database it also asks the configured ClickHouse\n" +
			"what it makes of the queries of sql rules; none is run.",
		RunE: func(c *cobra.Command, _ []string) error {
			lines, err := env.CheckConfig(config)
			if err == nil && database {
				var more []string
				more, err = env.CheckQueries(c.Context(), config)
				lines = append(lines, more...)
			}
			for _, l := range lines {
				fmt.Fprintln(env.Stdout, l)
			}
			if err != nil {
				fmt.Fprintln(env.Stderr, err)
				return errSilent
			}
			return nil
		},
	}
	c.Flags().BoolVar(&database, "database", false, "ask ClickHouse about the queries of sql rules, too")
	c.Flags().StringVar(&config, "config.file", "", "configuration file")
	return c
}
