package app

import (
	"io"
	"log/slog"

	"github.com/prometheus/common/promslog"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// LogConfig is the `log` section.
type LogConfig struct {
	Level  string         `yaml:"level"`  // debug, info, warn, error
	Format string         `yaml:"format"` // logfmt, json
	Pos    strictyaml.Pos `yaml:"-"`
}

// SetDefaults holds what a configuration means that leaves a key out.
func (c *LogConfig) SetDefaults() { c.Level, c.Format = "info", "logfmt" }

func (c *LogConfig) check() (errs strictyaml.Errors) {
	if err := promslog.NewLevel().Set(c.Level); err != nil {
		errs = append(errs, c.Pos.Errorf("log: level %q is none of debug, info, warn, error", c.Level))
	}
	if err := promslog.NewFormat().Set(c.Format); err != nil {
		errs = append(errs, c.Pos.Errorf("log: format %q is neither logfmt nor json", c.Format))
	}
	return errs
}

// newLogger makes the logger that every component gets a copy of. The configuration has been checked.
func newLogger(c LogConfig, w io.Writer) *slog.Logger {
	level, format := promslog.NewLevel(), promslog.NewFormat()
	_ = level.Set(c.Level)
	_ = format.Set(c.Format)
	return promslog.New(&promslog.Config{Level: level, Format: format, Writer: w})
}

// component decorates a module's logger with its name; nothing else is ever decorated.
func component(name string) fx.Option {
	return fx.Decorate(func(l *slog.Logger) *slog.Logger { return l.With("component", name) })
}

// wiringLogger sends fx's own events to the log, at debug: they matter only when the wiring itself is wrong, and what
// is wrong with a configuration is said in one plain line by main.
func wiringLogger() fx.Option {
	return fx.WithLogger(func(l *slog.Logger) fxevent.Logger {
		e := &fxevent.SlogLogger{Logger: l.With("component", "wiring")}
		e.UseLogLevel(slog.LevelDebug)
		e.UseErrorLevel(slog.LevelDebug)
		return e
	})
}
