package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tocsin-project/tocsin/internal/backtest"
	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/respond/route"
	"github.com/tocsin-project/tocsin/internal/rule"
)

// Stored is the history of an installation, with what its daemon judges by.
type Stored struct {
	History   backtest.History
	Catalogue *catalogue.Catalogue
	Rules     *rule.Set
	Routes    *route.Config
	RulesDir  string // "" for the shipped ones
	Close     func() error
	// ExternalLabels are the installation's, Binary is what this program calls itself in ticks.
	ExternalLabels map[string]string
	Binary         string
}

// stored opens the history of the configuration's installation.
func (e Env) stored(ctx context.Context, config string) (*Stored, error) {
	if e.Stored == nil {
		return nil, errors.New("this program has no access to stored history")
	}
	return e.Stored(ctx, config)
}

func addConfigFlag(c *cobra.Command) *string {
	return c.Flags().String("config.file", "tocsin.yaml", "configuration of the installation whose stored history is read, where no folder is given")
}
