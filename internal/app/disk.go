package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.uber.org/fx"

	"github.com/tocsin-project/tocsin/internal/respond/selfpage"
)

const (
	diskEvery = 10 * time.Second
	// A disk with less than both is nearly full: the outbox needs little, but what is next to it will take the rest.
	diskShare = 0.05
	diskBytes = 1 << 30
)

// watchDisk reports when the disk under a folder is nearly full. A full one fails the outbox in the middle of a page.
func watchDisk(lc fx.Lifecycle, stop fx.Shutdowner, dir string, pager *selfpage.Pager, logger *slog.Logger) {
	health := pager.From("disk")
	background(lc, stop, logger, "disk", func(ctx context.Context) error {
		for ctx.Err() == nil {
			if free, size, err := diskSpace(dir); err == nil {
				full, text := nearlyFull(free, size)
				health.Report(selfpage.DiskFull, !full, dir+": "+text)
			}
			pause(ctx, diskEvery)
		}
		return nil
	})
}

func nearlyFull(free, size uint64) (bool, string) {
	if size == 0 {
		return false, ""
	}
	share := float64(free) / float64(size)
	return share < diskShare && free < diskBytes, fmt.Sprintf("%d MiB free, %.1f%% of the disk", free>>20, share*100)
}
