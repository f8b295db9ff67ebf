package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// line is one of the file of records.
type line struct {
	Slices, Warm int
	Side         string
	Result       result
}

// recorded reads the earlier runs of the same size, for measurements that a machine is only free for piece by piece.
func (b *bench) recorded() (map[string][]result, error) {
	all := map[string][]result{}
	if b.record == "" {
		return all, nil
	}
	f, err := os.Open(b.record)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read earlier runs: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("read earlier runs: %w", err)
		}
		if l.Slices == b.slices && l.Warm == b.warm {
			all[l.Side] = append(all[l.Side], l.Result)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read earlier runs: %w", err)
	}
	return all, nil
}

// keep adds a run.
func (b *bench) keep(all map[string][]result, side string, r result) error {
	all[side] = append(all[side], r)
	if b.record == "" {
		return nil
	}
	j, err := json.Marshal(line{b.slices, b.warm, side, r})
	if err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	f, err := os.OpenFile(b.record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	defer f.Close()
	if _, err := f.Write(append(j, '\n')); err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	return nil
}
