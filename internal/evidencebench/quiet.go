package evidencebench

// Span is a stretch of quiet days in which pages are counted apart, from the beginning of one day to that of another.
type Span struct {
	From, To int
	Rivals   bool // or Tocsin alone
}

// quiet runs all methods over quiet days and returns the pages of each span. Spans follow each other; rivals come first.
func quiet(g *grid, kind Kind, seed uint64, spans []Span) []Tally {
	w := newWorld(kind, seed)
	watchers := make([]*watcher, 0, Keys)
	slice := 0
	for i, p := range w.paths {
		for range p.weights {
			watchers = append(watchers, newWatcher(g, slice))
			slice++
		}
		watchers = append(watchers, newWatcher(g, i))
	}
	rs := make([][]recent, services)
	for s := range rs {
		rs[s] = make([]recent, len(g.settings))
	}
	split := newRandom(seed, 3) // its own, so that what a method asks for does not change the world
	var buf []counts
	reached := make([]int16, len(g.settings))
	var out []Tally
	for _, span := range spans {
		tally := g.tally()
		for t := int64(span.From * day); t < int64(span.To*day); t++ {
			w.happen(t)
			next := 0
			for i, p := range w.paths {
				if i%perService == 0 {
					clear16(reached)
				}
				buf = w.minute(p, t, buf[:0])
				for _, c := range buf {
					watchers[next].quietMinute(split, c, span.Rivals, reached)
					next++
				}
				if i%perService == perService-1 {
					tally.count(rs[i/perService], int32(t), reached)
				}
			}
		}
		tally.sum()
		out = append(out, tally)
	}
	return out
}

func clear16(a []int16) {
	for i := range a {
		a[i] = none
	}
}

// quietMinute gives each method's highest level of a minute. The rivals are asked once, at its end, which flatters them; evidence
// every ten seconds where that can matter: a minute cannot add more than four decades.
func (w *watcher) quietMinute(r random, c counts, rivals bool, reached []int16) {
	if rivals {
		w.rivals(c, 1, reached[:rivalSettings])
	}
	ours := reached[rivalSettings:]
	before := w.tocsin.score()
	if c.f == 0 || before < evidenceLevels.lo-4 {
		w.tocsin.add(w.at, c.n, c.f)
		if c.f > 0 || before > evidenceLevels.lo {
			w.tocsin.reach(ours)
		}
		w.end(c, rivals)
		return
	}
	rest := c
	for i := range 6 {
		part := counts{r.binomial(rest.n-rest.f, 1/float64(6-i)), r.binomial(rest.f, 1/float64(6-i))}
		part.n += part.f
		rest.n, rest.f = rest.n-part.n, rest.f-part.f
		w.tocsin.add(w.at, part.n, part.f)
		w.tocsin.reach(ours)
	}
	w.end(c, rivals)
}
