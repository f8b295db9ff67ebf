package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// page is where -report writes, between these lines.
const (
	page      = "docs/detect-results.md"
	pageBegin = "<!-- measured: written by make bench-detect ARGS=-report -->\n"
	pageEnd   = "<!-- end of what was measured -->\n"
)

// write prints the tables, and keeps them if asked to.
func (b *bench) write(all map[string][]result) error {
	var out bytes.Buffer
	b.tables(&out, all)
	if _, err := os.Stdout.Write(out.Bytes()); err != nil {
		return fmt.Errorf("print the tables: %w", err)
	}
	if !b.report {
		return differences(all)
	}
	old, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	before, rest, ok := strings.Cut(string(old), pageBegin)
	_, after, ok2 := strings.Cut(rest, pageEnd)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the tables: want the lines %q and %q", page, pageBegin, pageEnd)
	}
	if err := os.WriteFile(page, []byte(before+pageBegin+"\n"+out.String()+"\n"+pageEnd+after), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return differences(all)
}

// of is the median over runs.
func of(rs []result, value func(*result) float64) float64 {
	var vs []float64
	for i := range rs {
		vs = append(vs, value(&rs[i]))
	}
	return median(vs)
}

func tickCPU(r *result) float64 { return mean(r.CPU) + mean(r.AppendCPU) }

func (b *bench) tables(w io.Writer, all map[string][]result) {
	fmt.Fprintf(w, "%d path-slices of %d paths, %d rules; %s, %d cores. A column is the median over runs of each run's mean tick, but for the worst tick.\n\n",
		b.slices, b.slices/regions, len(judgements), runtime.Version(), runtime.NumCPU())
	fmt.Fprintln(w, "| seconds of processor time a tick | takes in | judges | **together** | worst | with all between ticks | by the clock | times Tocsin's | runs × ticks | load |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|")
	own := of(all[roleTick], tickCPU)
	row := func(name, side string) {
		rs := all[side]
		if len(rs) == 0 {
			return
		}
		ratio, takes, judges := "", "in the same pass", ""
		if side != roleTick && side != sideShipped {
			takes, judges = seconds(of(rs, func(r *result) float64 { return mean(r.AppendCPU) })), seconds(of(rs, func(r *result) float64 { return mean(r.CPU) }))
			if own > 0 {
				ratio = fmt.Sprintf("**%.1f**", of(rs, tickCPU)/own)
			}
		}
		fmt.Fprintf(w, "| %s | %s | %s | **%s** | %s | %s | %s | %s | %d × %d | %.1f |\n", name, takes, judges, seconds(of(rs, tickCPU)),
			seconds(of(rs, func(r *result) float64 { return worst(r.CPU) + worst(r.AppendCPU) })), seconds(of(rs, func(r *result) float64 { return r.Whole })),
			seconds(of(rs, func(r *result) float64 { return mean(r.Wall) + mean(r.AppendWall) })), ratio, len(rs), len(rs[0].CPU), of(rs, func(r *result) float64 { return r.Load }))
	}
	row("**Tocsin**", roleTick)
	row("Tocsin, with the rules that it ships", sideShipped)
	for _, v := range variants {
		row("Prometheus, "+v.name, v.name)
	}
	b.memory(w, all)
	restarts(w, all, replayed(b.slices))
	findings(w, all)
}

func seconds(s float64) string {
	switch {
	case s >= 10:
		return fmt.Sprintf("%.1f", s)
	case s >= 1:
		return fmt.Sprintf("%.2f", s)
	}
	return fmt.Sprintf("%.3f", s)
}

func (b *bench) memory(w io.Writer, all map[string][]result) {
	fmt.Fprintln(w, "\n| memory, MB | reachable | KB a path-slice | resident | peak | series kept | times Tocsin's |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	reach := func(r *result) float64 { return float64(r.Heap) }
	own := of(all[roleTick], reach)
	row := func(name, side string) {
		rs := all[side]
		if len(rs) == 0 {
			return
		}
		ratio := ""
		if side != roleTick && side != sideShipped && own > 0 {
			ratio = fmt.Sprintf("%.1f", of(rs, reach)/own)
		}
		fmt.Fprintf(w, "| %s | %.0f | %.1f | %.0f | %.0f | %d | %s |\n", name, of(rs, reach)/1e6, of(rs, reach)/1e3/float64(b.slices),
			of(rs, func(r *result) float64 { return float64(r.RSS) })/1e6, of(rs, func(r *result) float64 { return float64(r.Peak) })/1e6, rs[0].Series, ratio)
	}
	row("**Tocsin**", roleTick)
	row("Tocsin, with the rules that it ships", sideShipped)
	for _, v := range variants {
		row("Prometheus, "+v.name, v.name)
	}
}

func restarts(w io.Writer, all map[string][]result, repeats int) {
	rs := all[roleRestart]
	ts := all[roleTick]
	if len(rs) == 0 || len(ts) == 0 {
		return
	}
	in := func(value func(*restart) float64) string {
		return seconds(of(rs, func(r *result) float64 { return value(r.Restart) }))
	}
	fmt.Fprintln(w, "\n| restart, seconds | by the clock | processor time |")
	fmt.Fprintln(w, "|---|---|---|")
	fmt.Fprintf(w, "| from the start of the process to the state of the checkpoint | %s | %s |\n", in(func(x *restart) float64 { return x.Read }), in(func(x *restart) float64 { return x.ReadCPU }))
	fmt.Fprintf(w, "| its first tick | %s | %s |\n", in(func(x *restart) float64 { return x.First }), in(func(x *restart) float64 { return x.FirstCPU }))
	fmt.Fprintf(w, "| **together, to the end of the first tick** | **%s** | **%s** |\n", in(func(x *restart) float64 { return x.Read + x.First }), in(func(x *restart) float64 { return x.ReadCPU + x.FirstCPU }))
	fmt.Fprintf(w, "| what a killed one repeats at most: %d ticks | %s | %s |\n", repeats, in(func(x *restart) float64 { return x.Replay }), in(func(x *restart) float64 { return x.ReplayCPU }))
	db := all[roleStored]
	stored := func(value func(*result) float64) string { return seconds(of(db, value)) }
	if len(db) > 0 {
		fmt.Fprintf(w, "| **with ClickHouse, to the first tick stored**, nothing to repeat | **%s** | %s |\n", stored(func(r *result) float64 { return r.Restart.First }), stored(func(r *result) float64 { return r.Restart.FirstCPU }))
		fmt.Fprintf(w, "| the same with %d ticks to repeat | %s | %s |\n", repeats, stored(func(r *result) float64 { return r.Restart.Replay }), stored(func(r *result) float64 { return r.Restart.ReplayCPU }))
		read, database := of(db, func(r *result) float64 { return r.Claim.CPU }), of(db, func(r *result) float64 { return r.Claim.Database })
		whole := of(ts, tickCPU) + read + database
		fmt.Fprintf(w, "\nTo get a tick's rows from ClickHouse takes %s s of processor time in Tocsin and %s s in ClickHouse beside the tick itself, %s s together; what stands in its place in Prometheus, scraping, is not measured.",
			seconds(read), seconds(database), seconds(whole))
		for _, v := range variants {
			if ps := all[v.name]; len(ps) > 0 {
				fmt.Fprintf(w, " Prometheus, %s: %.1f times that.", v.name, of(ps, tickCPU)/whole)
			}
		}
		fmt.Fprintln(w)
	}
	for _, v := range variants {
		if ps := all[v.name]; len(ps) > 0 && ps[0].Restart != nil {
			fmt.Fprintf(w, "\nPrometheus (%s), closed in good order, takes %s s to read its log again (%s s of processor time), and %s s for its first evaluation.\n", v.name,
				seconds(of(ps, func(r *result) float64 { return r.Restart.Read })), seconds(of(ps, func(r *result) float64 { return r.Restart.ReadCPU })),
				seconds(of(ps, func(r *result) float64 { return r.Restart.First })))
		}
	}
	snapshot := of(ts, func(r *result) float64 { return r.SnapshotCPU })
	fmt.Fprintf(w, "\nA checkpoint, after %d ticks at most, takes %s s of processor time, %s s a tick, and has %.1f MB.\n", repeats+1, seconds(snapshot), seconds(snapshot/float64(repeats+1)), of(ts, func(r *result) float64 { return float64(r.SnapshotBytes) })/1e6)
}

// findings says whether all came to the same.
func findings(w io.Writer, all map[string][]result) {
	if len(all[roleTick]) == 0 {
		return
	}
	own := all[roleTick][len(all[roleTick])-1].Firing
	var same []string
	for _, v := range variants {
		for _, r := range all[v.name] {
			if !slices.Equal(r.Firing, own) {
				fmt.Fprintf(w, "\nPrometheus, %s, found otherwise: %d, Tocsin %d.\n", v.name, len(r.Firing), len(own))
			} else if !slices.Contains(same, v.name) {
				same = append(same, v.name)
			}
		}
	}
	if len(same) > 0 {
		version := all[same[0]][0].Version
		fmt.Fprintf(w, "\nAfter the last tick %d findings fired in Tocsin, and the same ones, rule by rule and slice by slice, in Prometheus %s (%s).\n", len(own), version, strings.Join(same, ", "))
	}
}

// differences is an error where sides did not find the same: then their costs are of different things.
func differences(all map[string][]result) error {
	var first []string
	name := ""
	for _, side := range append([]string{roleTick}, variantNames()...) {
		for _, r := range all[side] {
			if name == "" {
				first, name = r.Firing, side
			}
			if missing, more := apart(first, r.Firing); len(missing)+len(more) > 0 {
				return fmt.Errorf("%s and %s found different things: only the first %q, only the second %q", name, side, missing, more)
			}
		}
	}
	return nil
}

// apart has what only one of two sorted lists has, a few of each.
func apart(a, b []string) (onlyA, onlyB []string) {
	few := func(from, other []string) (out []string) {
		for _, x := range from {
			if _, found := slices.BinarySearch(other, x); !found && len(out) < 5 {
				out = append(out, x)
			}
		}
		return out
	}
	return few(a, b), few(b, a)
}

func variantNames() (out []string) {
	for _, v := range variants {
		out = append(out, v.name)
	}
	return out
}
