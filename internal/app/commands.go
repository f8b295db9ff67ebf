package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.uber.org/fx"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/kafka"
)

// commands reads the commands topic. The detector knows by their ids those that it has carried out, so reading begins
// at the oldest one that the topic keeps.
type commands struct {
	mu      sync.Mutex
	waiting []incident.Command
}

// maxCommands bounds what waits for the detector.
const maxCommands = 10_000

var _ detect.CommandSource = (*commands)(nil)

func newCommands(lc fx.Lifecycle, stop fx.Shutdowner, c *Config, client *kafka.Client, t *topics, logger *slog.Logger) *commands {
	s := &commands{}
	background(lc, stop, logger, "commands", func(ctx context.Context) error {
		if !t.wait(ctx) {
			return nil
		}
		follow(ctx, client, c.Kafka.CommandsTopic, func(r kafka.Record) {
			for s.full() && ctx.Err() == nil {
				pause(ctx, time.Second)
			}
			var cmd incident.Command
			if err := json.Unmarshal(r.Value, &cmd); err != nil || cmd.ID == "" {
				logger.Error("a record of the commands topic is no command", "topic", c.Kafka.CommandsTopic, "partition", 0, "offset", r.Offset, "err", err)
				return
			}
			s.add(cmd)
		}, func() {})
		return nil
	})
	return s
}

func (s *commands) add(c incident.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, c)
}

// full says that reading has to wait. On a process that does not lead nobody takes commands away; should it lead one
// day, it goes on with those that it has, and then reads on where it stopped.
func (s *commands) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) >= maxCommands
}

// Pending gives the oldest commands that were not done.
func (s *commands) Pending(limit int) []incident.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.waiting[:min(limit, len(s.waiting))])
}

// Done forgets commands.
func (s *commands) Done(done []incident.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(c incident.Command) bool {
		return slices.ContainsFunc(done, func(d incident.Command) bool { return d.ID == c.ID })
	})
}
