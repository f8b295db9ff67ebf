package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Run is `tocsin demo`: it plays the scenario, sums up, and leaves the console up until ctx ends unless told to exit.
func Run(ctx context.Context, o Options, exit bool) error {
	began := time.Now()
	d, err := Start(ctx, o)
	if err != nil {
		return err
	}
	defer d.Close()
	switch err := d.Play(ctx); {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return nil // Ctrl-C
	case err != nil:
		return err
	}
	if err := d.Summary(ctx, exit); err != nil {
		return err
	}
	d.screen.line("Took %.0f s.", time.Since(began).Seconds())
	if exit {
		return nil
	}
	d.screen.line("The console stays up; Ctrl-C ends it.")
	select {
	case <-ctx.Done():
		return nil
	case <-d.daemon.Load().done:
		return d.ended()
	}
}

// ended is why nothing can go on without the daemon.
func (d *Demo) ended() error {
	return fmt.Errorf("the daemon ended by itself (%w); its log is %s", cmp.Or(d.daemon.Load().err, errEnded), d.logFile())
}
