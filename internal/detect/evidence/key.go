package evidence

import "math"

// Key watches one series of counts. It is owned by one goroutine; its Model and Season are shared with others.
// Size: see TestSize. The zero Key is of no use, New and Decode make one.
type Key struct {
	model  *Model
	season Season
	share  float64 // of false alarms a minute that this key may give, fixed at its birth

	born   int64
	minute int64 // the open one
	n, f   uint64

	learned   learner
	null      null
	refreshed int64 // the minute in which the null was renewed
	// What the closed minutes prove, for each alternative: with the cap, and without it for the guard.
	capped, bare [alternatives]float64
	guarded      int32 // for how many minutes learning has been held
	// The capped sum after each of the last closed minutes with counts, the newest first.
	before [MaxBurst]float64

	// The last minutes, by minute modulo keep: counts, evidence in tenths of a decade, and those never to be learned.
	ns, fs [keep]uint32
	scores [keep]int8
	left   [keep]bool
}

// New makes a key that first sees the given minute. Share is its part of the false-alarm budget, in alarms a minute; see Shares.
// Season may be nil.
func New(m *Model, share float64, minute int64, season Season) *Key {
	k := &Key{model: m, season: season, share: share, born: minute, minute: minute}
	k.learned.to, k.learned.last, k.learned.hour = minute-1, minute, minute/hour
	k.refresh()
	return k
}

// Rescale changes the share, when a person changes the budget: the sums are proportional to it.
func (k *Key) Rescale(share float64) {
	if share == k.share {
		return
	}
	f := share / k.share
	k.share = share
	for j := range k.capped {
		k.capped[j] *= f
		k.bare[j] *= f
	}
	for i := range k.before {
		k.before[i] *= f
	}
}

// Share is what New was given.
func (k *Key) Share() float64 { return k.share }

// Minute is the open one.
func (k *Key) Minute() int64 { return k.minute }

// Fade is what is left at a later minute of what is proven now.
func (k *Key) Fade(minute int64) float64 {
	if minute <= k.minute {
		return 1
	}
	return k.model.fade(minute - k.minute)
}

// Observe adds f bad ones of n to a minute. Counts of an earlier minute than the open one are late; they belong to
// the open one, because that is when they prove something. A later minute closes the open one.
func (k *Key) Observe(minute int64, n, f uint64) {
	k.Advance(minute)
	k.n += n
	k.f += f
}

// Advance closes all minutes before the given one. Minutes without any counts neither prove nor teach anything.
func (k *Key) Advance(minute int64) {
	if minute <= k.minute {
		return
	}
	from := k.minute
	k.close()
	k.learn()
	// A long silence needs no more steps than there are minutes that wait to be learned.
	score := k.scores[slot(k.minute)]
	for end := min(minute, k.minute+1+keep); k.minute+1 < end; {
		k.minute++
		i := slot(k.minute)
		k.ns[i], k.fs[i], k.left[i], k.scores[i] = 0, 0, false, score
		k.learn()
	}
	k.fade(minute - from)
	k.minute, k.n, k.f = minute, 0, 0
	if k.minute/5 != k.refreshed/5 {
		k.refresh() // nothing that is learned moves faster
	}
}

// fade lets beginnings that are long past count less. It makes the sums smaller only, so the promise holds; and it is what lets
// them be multiplied with those of another source, see Fuse.
func (k *Key) fade(minutes int64) {
	by := k.model.fade(minutes)
	for j := range k.capped {
		k.capped[j] *= by
	}
}

func (m *Model) fade(minutes int64) float64 {
	if m.Memory <= 0 {
		return 1
	}
	return math.Exp(-float64(minutes) / m.Memory)
}

func slot(minute int64) int { return int(((minute % keep) + keep) % keep) }

// close lets the open minute prove what it can and puts it among the last ones.
func (k *Key) close() {
	i := slot(k.minute)
	if k.n > 0 && k.Ready() {
		c, b := k.proven(true)
		copy(k.before[1:], k.before[:])
		k.before[0] = sum(&c)
		k.capped, k.bare = c, b
		k.guard()
	}
	k.ns[i], k.fs[i] = clip(k.n), clip(k.f)
	k.left[i] = k.guarded > 0 && log10Sum(&k.bare) > k.model.GuardForget && k.bad(float64(k.n), float64(k.f))
	k.scores[i] = int8(math.Round(10 * max(-12, min(12, log10Sum(&k.capped)))))
}

func clip(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }

// proven are the sums with the open minute in them. A part of a minute is no less valid than a whole one: its likelihood
// ratio is that of the same model, stopped earlier.
//
// The cap: whatever happens in Burst minutes in a row multiplies the sum by 1/ε at most, because once in 1/ε minutes
// such a blip begins for no lasting reason.
func (k *Key) proven(bare bool) (c, b [alternatives]float64) {
	var ratio [alternatives]float64
	k.null.ratios(float64(k.n), float64(k.f), &ratio)
	start := k.share / alternatives
	for j, l := range ratio {
		c[j] = (start + k.capped[j]) * l
	}
	most := math.Pow(10, k.model.Ceiling)
	for _, r := range k.before[:k.model.Burst] {
		most = min(most, (k.share+r)/k.model.Cap)
	}
	limit(&c, most)
	if bare {
		for j, l := range ratio {
			b[j] = (start + k.bare[j]) * l
		}
		limit(&b, guardCeiling)
	}
	return c, b
}

// guardCeiling lets the guard see within minutes that trouble is over.
const guardCeiling = 1e3

// limit scales the sums down to what they may be together.
func limit(r *[alternatives]float64, most float64) {
	if s := sum(r); s > most {
		for j := range r {
			r[j] *= most / s
		}
	}
}

func sum(r *[alternatives]float64) (s float64) {
	for _, v := range r {
		s += v
	}
	return s
}

func log10Sum(r *[alternatives]float64) float64 { return math.Log10(max(sum(r), 1e-30)) }

// Score is the evidence in decades: at 0 and above the key is abnormal, and would be so by chance no more often than its
// share of the budget allows. It includes the open minute.
func (k *Key) Score() float64 {
	if k.n == 0 || !k.Ready() {
		return log10Sum(&k.capped)
	}
	c, _ := k.proven(false)
	return log10Sum(&c)
}

// Gain is how many times as likely the counts are by now, averaged over what may have begun and when, as they would be were all
// normal; the evidence without the key's share of a budget. Minute is the present: what was proven fades.
func (k *Key) Gain(minute int64) float64 {
	c := k.capped
	if k.n > 0 && k.Ready() {
		c, _ = k.proven(false)
	}
	return sum(&c) / k.share * k.Fade(minute)
}

// Ready tells whether the key knows enough to prove anything: half an hour, and as much as it was taken to have seen before its
// first minute. Else a path with few requests, all of which have always failed, would be held against that guess.
func (k *Key) Ready() bool {
	return k.minute-k.born >= int64(k.model.Blind) && k.learned.n >= k.model.PriorExposure
}

// Level is what is usual at this hour, Tolerated what is accepted.
func (k *Key) Level() float64     { return k.null.level }
func (k *Key) Tolerated() float64 { return k.null.p0 }
