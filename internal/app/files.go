package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tocsin-project/tocsin/internal/catalogue"
	"github.com/tocsin-project/tocsin/internal/detect/ruletest"
	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/ingest/decode"
	"github.com/tocsin-project/tocsin/internal/pipeline"
	"github.com/tocsin-project/tocsin/internal/respond/receivers"
	"github.com/tocsin-project/tocsin/internal/respond/rehearse"
	"github.com/tocsin-project/tocsin/internal/respond/route"
	"github.com/tocsin-project/tocsin/internal/respond/selfpage"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
	"github.com/tocsin-project/tocsin/pipelines"
	"github.com/tocsin-project/tocsin/rules"
)

// Files is everything that the configuration names, read and checked.
type Files struct {
	Pipelines *pipeline.Set
	Sources   []ingest.Source
	Rules     *rule.Set
	Routes    *route.Config
	RoutesDir string // where secrets of the routes are looked up
	Catalogue *catalogue.Catalogue
}

// LoadFiles reads pipelines, rules, routes and the catalogue, and reports the mistakes of all of them together.
func LoadFiles(c *Config) (*Files, error) {
	f := &Files{Catalogue: catalogue.Empty()}
	var errs strictyaml.Errors
	keep := func(what, dir string, err error) {
		if err != nil {
			below(dir, err)
			errs.Add(strictyaml.Pos{File: what}, err)
		}
	}
	var err error
	f.Pipelines, err = pipeline.Load(c.dir(c.Files.Pipelines, pipelines.FS))
	if err == nil && len(f.Pipelines.Pipelines) == 0 {
		err = empty(c.path(c.Files.Pipelines), "pipeline")
	}
	keep("pipelines", c.path(c.Files.Pipelines), err)
	if err == nil {
		f.Sources, err = decode.Sources(f.Pipelines)
		keep("pipelines", c.path(c.Files.Pipelines), err)
	}
	f.Rules, err = rule.LoadFS(c.dir(c.Files.Rules, rules.FS), ".")
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(f.Rules.Groups) == 0 {
		err = empty(c.path(c.Files.Rules), "rule")
	}
	keep("rules", c.path(c.Files.Rules), err)
	f.Routes, f.RoutesDir, err = loadRoutes(c)
	keep("routes", "", err)
	if c.Files.Catalogue != "" {
		f.Catalogue, err = catalogue.Load(c.path(c.Files.Catalogue))
		keep("catalogue", "", err)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// below makes the places of mistakes in the files of a folder places that an editor finds.
func below(dir string, err error) {
	var es strictyaml.Errors
	if dir == "" || !errors.As(err, &es) {
		return
	}
	for _, e := range es {
		if e.File != "" && !filepath.IsAbs(e.File) {
			e.File = filepath.Join(dir, e.File)
		}
	}
}

// empty says that a folder has nothing to go by: a Tocsin that reads or judges nothing because of a mistyped name would
// look healthy for ever.
func empty(dir, what string) error {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	return fmt.Errorf("%s holds no %s", dir, what)
}

func loadRoutes(c *Config) (*route.Config, string, error) {
	name := c.path(c.Files.Routes)
	if name == "" {
		r, err := Routes("")
		return r, filepath.Dir(c.file), err
	}
	r, err := Routes(name)
	return r, filepath.Dir(name), err
}

// Routes reads a routes file, or the shipped one. No secret is read.
func Routes(file string) (*route.Config, error) {
	if file == "" {
		data, err := fs.ReadFile(rules.FS, "routes.yaml")
		if err != nil {
			return nil, err
		}
		return receivers.Load("rules/routes.yaml", data)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading routes: %w", err)
	}
	return receivers.Load(file, data)
}

// Rehearse makes what stands for the respond loop in tests of rules and routes.
func Rehearse(r ruletest.Rehearsal) (ruletest.Responder, error) { return rehearse.New(r) }

// load reads a configuration and what it names; without a file, what Tocsin ships with.
func load(file string) (*Config, *Files, error) {
	c := &Config{}
	if file != "" {
		var err error
		if c, err = LoadConfig(file); err != nil {
			return nil, nil, err
		}
	}
	f, err := LoadFiles(c)
	return c, f, err
}

// CheckConfig reads a configuration and everything it names, and says what it found. Without a file it reads what Tocsin
// ships with.
func CheckConfig(file string) ([]string, error) {
	c, f, err := load(file)
	if err != nil {
		return nil, err
	}
	good := "all files are good"
	if file != "" {
		places, err := newPlaces(c, f)
		if err != nil {
			good += "; but the daemon would not start here, because a receiver can't be built:\n" + err.Error()
		} else if _, err := selfpage.Select(places, c.SelfPage.Receivers); err != nil {
			return nil, err
		}
	}
	ruleCount := len(f.Rules.Rules())
	return append(f.Rules.Warnings(known(f)),
		fmt.Sprintf("pipelines: %d", len(f.Pipelines.Pipelines)),
		fmt.Sprintf("rules: %d in %d groups, revision %s", ruleCount, len(f.Rules.Groups), f.Rules.Revision),
		fmt.Sprintf("receivers: %d", len(f.Routes.Receivers)),
		fmt.Sprintf("catalogue: %d services, %d resources, %d areas", len(f.Catalogue.Services), len(f.Catalogue.Resources), len(f.Catalogue.Areas)),
		good,
	), nil
}
