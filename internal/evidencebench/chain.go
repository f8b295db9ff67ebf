package evidencebench

import (
	"math"

	"github.com/tocsin-project/tocsin/internal/detect/evidence"
)

// chain is the evidence of one key under blips of several lengths. They differ only after something has happened: the cap of the
// shortest one binds first. So the others are copies that are made when there is something to tell apart, and dropped when
// there no longer is; the result is that of keys of their own.
type chain struct {
	models []*evidence.Model
	keys   []*evidence.Key // the first is always there, the others all or none
	low    float64         // evidence at which copies are made, before any cap can bind
}

// apart is how many decades above its share a key's copies are made: the cap allows four.
const apart = 3

func newChain(g *grid, share float64) chain {
	return chain{
		models: g.models, low: math.Log10(share) + apart,
		keys: append(make([]*evidence.Key, 0, len(g.models)), evidence.New(g.models[0], share, 0, nil)),
	}
}

func (c *chain) level() float64 { return c.keys[0].Level() }

// add puts part of the open minute in.
func (c *chain) add(minute int64, n, f uint64) {
	for _, k := range c.keys {
		k.Observe(minute, n, f)
	}
	if f > 0 && len(c.keys) == 1 && len(c.models) > 1 && c.keys[0].Score() > c.low {
		c.split()
	}
}

func (c *chain) split() {
	state, err := c.keys[0].AppendBinary(nil)
	for _, m := range c.models[1:] {
		var k *evidence.Key
		if err == nil {
			k, err = evidence.Decode(m, nil, state)
		}
		if err != nil {
			panic("copying a key: " + err.Error()) // bytes that were written a line above
		}
		c.keys = append(c.keys, k)
	}
}

// advance closes the minutes before the given one.
func (c *chain) advance(minute int64) {
	for _, k := range c.keys {
		k.Advance(minute)
	}
	if len(c.keys) == 1 || c.keys[0].Score() > c.low-0.5 {
		return
	}
	for _, k := range c.keys[1:] {
		if c.keys[0].Score()-k.Score() > 0.01 {
			return
		}
	}
	c.keys = c.keys[:1]
}

// score is the evidence under the shortest blips, which is the most.
func (c *chain) score() float64 { return c.keys[0].Score() }

// reach raises what a service has reached by what this key proves now.
func (c *chain) reach(reached []int16) {
	if c.score() < evidenceLevels.lo {
		return
	}
	beyond := c.keys[0].Excess().Beyond // of counts, which all have in common
	for i := range c.models {
		k := c.keys[min(i, len(c.keys)-1)]
		level := evidenceLevels.at(k.Score())
		if level < 0 {
			continue
		}
		for gi, fl := range floors {
			if fl > 1 && beyond < float64(fl) {
				break
			}
			if at := &reached[i*len(floors)+gi]; *at < level {
				*at = level
			}
		}
	}
}
