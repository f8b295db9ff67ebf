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

func testCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use: "test [FOLDER...]", Short: "Run the tests that stand beside rules and pipelines (*_test.yaml)",
		Long: "Runs every *_test.yaml below the folders; a file that begins with `pipeline:` tests a mapping, others test rules. Without a\n" +
			"folder it runs the tests of what Tocsin ships with.",
		RunE: func(_ *cobra.Command, folders []string) error {
			return runTests(env, folders)
		},
	}
}
