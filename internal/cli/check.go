package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func checkCommand(env Env) *cobra.Command {
	var config string
	c := &cobra.Command{
		Use: "check", Short: "Read the configuration and every file it names, and report all mistakes", Args: noArgs,
		Long: "Reads the configuration with its pipelines, rules, routes and catalogue as the daemon would, and prints every mistake as\n" +
			"file:line:col. Without --config.file it checks what Tocsin ships with.",
		RunE: func(*cobra.Command, []string) error {
			lines, err := env.CheckConfig(config)
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
	c.Flags().StringVar(&config, "config.file", "", "configuration file")
	return c
}
