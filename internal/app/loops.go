package app

import (
	"context"
	"log/slog"
	"time"

	"go.uber.org/fx"
)

// stopTimeout is above the longest flush of any loop, so that fx never gives up on one that is still storing.
const stopTimeout = 30 * time.Second

// complaint puts into the log that something is down: when it begins, once a minute while it lasts, and when it is over.
// A process that waits for its database without a word looks as if it hung.
type complaint struct {
	logger *slog.Logger
	what   string
	since  time.Time // when it began, zero while all is well
	said   time.Time
}

const complainEvery = time.Minute

func (c *complaint) look(err error, now time.Time) {
	switch {
	case err == nil && c.since.IsZero():
	case err == nil:
		c.logger.Info(c.what+" answers again", "after", now.Sub(c.since).Round(time.Second))
		c.since = time.Time{}
	case c.since.IsZero():
		c.since, c.said = now, now
		c.logger.Warn(c.what+" does not answer, trying on", "err", err)
	case now.Sub(c.said) >= complainEvery:
		c.said = now
		c.logger.Warn(c.what+" still does not answer, trying on", "for", now.Sub(c.since).Round(time.Second), "err", err)
	}
}

// background runs f from start to stop. A loop that ends by itself takes the process with it: a Tocsin that runs without
// one of its loops looks healthy and is not.
func background(lc fx.Lifecycle, stop fx.Shutdowner, logger *slog.Logger, name string, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			logger.Debug("loop begins", "loop", name)
			go func() {
				defer close(done)
				err := f(ctx)
				if ctx.Err() != nil {
					if err != nil {
						logger.Warn("ended with an error while stopping", "loop", name, "err", err)
					}
					return
				}
				logger.Error("ended by itself, so the process ends", "loop", name, "err", err)
				_ = stop.Shutdown(fx.ExitCode(1))
			}()
			return nil
		},
		OnStop: func(stopping context.Context) error {
			cancel()
			select {
			case <-done:
				logger.Debug("loop ended", "loop", name)
				return nil
			case <-stopping.Done():
				return stopping.Err()
			}
		},
	})
}
