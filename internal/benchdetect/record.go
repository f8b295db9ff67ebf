package main

import (
	"github.com/tocsin-project/tocsin/internal/measured"
)

// line is one of the file of records.
type line struct {
	Slices, Warm int
	Side         string
	Result       result
}

// recorded reads the earlier runs of the same size.
func (b *bench) recorded() (map[string][]result, error) {
	all := map[string][]result{}
	err := measured.Record[line](b.record).Each(func(l line) {
		if l.Slices == b.slices && l.Warm == b.warm {
			all[l.Side] = append(all[l.Side], l.Result)
		}
	})
	return all, err
}

// keep adds a run.
func (b *bench) keep(all map[string][]result, side string, r result) error {
	all[side] = append(all[side], r)
	return measured.Record[line](b.record).Add(line{b.slices, b.warm, side, r})
}
