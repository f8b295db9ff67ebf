package backtest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/incident"
)

// conclusions are a tick's outputs in the order in which they are stored.
func conclusions(tick uint64, o *detect.Outputs) []incident.Conclusion {
	out := make([]incident.Conclusion, 0, len(o.Transitions)+len(o.Events)+len(o.Warnings))
	for i := range o.Transitions {
		out = append(out, incident.Conclusion{Tick: tick, Finding: &o.Transitions[i]})
	}
	for i := range o.Events {
		out = append(out, incident.Conclusion{Tick: tick, Event: &o.Events[i]})
	}
	for i := range o.Warnings {
		out = append(out, incident.Conclusion{Tick: tick, Warning: &o.Warnings[i]})
	}
	return out
}

// Verified says whether a replay came to what the live detector stored, byte for byte.
type Verified struct {
	Ticks    int `json:"ticks"`
	Findings int `json:"findings"`
	Events   int `json:"events"`
	Warnings int `json:"warnings"`
	// Different counts the ticks that came to something else; First is the first of them.
	Different int         `json:"different"`
	First     *Difference `json:"first,omitempty"`
}

// Difference is where a replay and the stored log part. One side may be missing.
type Difference struct {
	Tick   uint64          `json:"tick"`
	Stored json.RawMessage `json:"stored,omitempty"`
	Replay json.RawMessage `json:"replay,omitempty"`
}

// compare holds what consecutive ticks concluded in the replay to what is stored of them.
func (v *Verified) compare(ctx context.Context, h History, ticks []detect.Tick, replayed []incident.Conclusion) error {
	if len(ticks) == 0 {
		return nil
	}
	stored, err := h.Said(ctx, ticks)
	if err != nil {
		return err
	}
	v.Ticks += len(ticks)
	for _, t := range ticks {
		a, b := ofTick(&stored, t.Number), ofTick(&replayed, t.Number)
		same := true
		for i := range max(len(a), len(b)) {
			x, err := at(a, i)
			if err != nil {
				return err
			}
			y, err := at(b, i)
			if err != nil {
				return err
			}
			if string(x) == string(y) {
				v.count(&a[i])
				continue
			}
			same = false
			if v.First == nil {
				v.First = &Difference{Tick: t.Number, Stored: x, Replay: y}
			}
		}
		if !same {
			v.Different++
		}
	}
	return nil
}

// ofTick takes a tick's conclusions off the front of a list that is ordered by tick.
func ofTick(list *[]incident.Conclusion, tick uint64) []incident.Conclusion {
	n := 0
	for n < len(*list) && (*list)[n].Tick <= tick {
		n++
	}
	out := (*list)[:n]
	*list = (*list)[n:]
	return out
}

func at(list []incident.Conclusion, i int) (json.RawMessage, error) {
	if i >= len(list) {
		return nil, nil
	}
	b, err := json.Marshal(&list[i])
	if err != nil {
		return nil, fmt.Errorf("encoding what tick %d concluded: %w", list[i].Tick, err)
	}
	return b, nil
}

func (v *Verified) count(c *incident.Conclusion) {
	switch {
	case c.Finding != nil:
		v.Findings++
	case c.Event != nil:
		v.Events++
	default:
		v.Warnings++
	}
}
