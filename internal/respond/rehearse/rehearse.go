// Package rehearse lets the third loop act without an audience, for `tocsin test`: the planner that decides whom to tell and the senders
// that write messages are those of the daemon, but what they send stays here, as text. It reads no secret, has no clock and no
// network, and is not for sending anything.
package rehearse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/tocsin-project/tocsin/internal/detect/ruletest"
	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/respond"
	"github.com/tocsin-project/tocsin/internal/respond/receivers"
	"github.com/tocsin-project/tocsin/internal/respond/route"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// stepsMax bounds what one place does at one moment, so that a planner that never comes to rest is an error.
const stepsMax = 1000

// Stage is one rehearsal.
type Stage struct {
	planner *respond.Planner
	places  []respond.Place
	wire    *wire
	tick    uint64
}

var _ ruletest.Responder = (*Stage)(nil)

// New sets the stage: the routes, and silences that are known from the beginning.
func New(r ruletest.Rehearsal) (ruletest.Responder, error) {
	cfg, err := receivers.Load(r.File, r.Routes)
	if err != nil {
		return nil, err
	}
	s := &Stage{wire: &wire{}}
	s.places, err = receivers.Build(cfg, receivers.Options{Client: &http.Client{Transport: s.wire}, Secret: invented})
	if err != nil {
		return nil, err
	}
	for i := range s.places {
		s.places[i].Pace = 0 // nobody is waited for
	}
	s.planner = respond.NewPlanner(cfg, s.places, respond.Settings{})
	var silences []respond.Silence
	for i, one := range r.Silences {
		var matchers route.Matchers
		for _, m := range one.Matchers {
			parsed, err := route.ParseMatchers(m)
			if err != nil {
				return nil, fmt.Errorf("silence %d: %w", i+1, err)
			}
			matchers = append(matchers, parsed...)
		}
		silences = append(silences, respond.Silence{ID: fmt.Sprint(i + 1), Matchers: matchers, StartsAt: one.From, EndsAt: one.To})
	}
	s.planner.SetSilences(silences)
	return s, nil
}

// invented stands for a secret that nobody needs to know: each file has its own, so that places stay apart.
func invented(kind, file string) strictyaml.Secret {
	sum := sha256.Sum256([]byte(kind + "\n" + file))
	text := hex.EncodeToString(sum[:16])
	if kind == "webhook" {
		text = "https://rehearsal.invalid/" + text
	}
	return strictyaml.Secret(text)
}

// Hear plans and delivers as the loop does after each tick, with every message accepted at once.
func (s *Stage) Hear(now time.Time, events []incident.Event) (out []ruletest.Message, err error) {
	s.tick++
	for i := range events {
		s.planner.Observe(events[i], true)
	}
	s.planner.SetHead(respond.Head{Tick: s.tick, To: now, Clock: now})
	s.planner.Plan(now)
	for i := range s.places {
		p := &s.places[i]
		for n := 0; ; n++ {
			step, ok, _ := s.planner.Take(p.ID, now)
			if !ok {
				break
			}
			if n == stepsMax {
				return nil, fmt.Errorf("%s is told something without end", p.ID)
			}
			receipt, err := p.Sender.Send(context.Background(), step.Delivery)
			if err != nil {
				return nil, fmt.Errorf("sending to %s: %w", step.Receiver, err)
			}
			s.planner.Done(step, receipt, nil, now)
			for _, text := range s.wire.taken(p.Kind) {
				out = append(out, ruletest.Message{Receiver: step.Receiver, Kind: p.Kind, Action: string(step.Delivery.Action), Text: text})
			}
		}
	}
	s.planner.Dirty() // what a store would keep
	return out, nil
}
