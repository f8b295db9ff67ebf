package detect

import "encoding/binary"

// lanes are sums over the windows that rules look at, kept while a series has anything bad in the last hour: each bucket is added
// when it ends and taken away when a window has passed it. Rules read them to see quickly that there is nothing to be judged; they are
// not part of the state, since they follow from the ring.
type lanes struct {
	sums     []uint32 // by column, then by window; the last of a column is what no burn rate has summed up yet
	at       int64    // windows end before this bucket; 0 while they are not kept
	troubled int64    // newest bucket with anything that a rule calls bad
	checks   *selection
	past     []*history // by burn-rate rule with long windows, as far as they are known
	tried    []*tried   // by rule of kind retries, as far as they are known
	rank     int        // see Detector.rank
	asked    int64      // by which question it has been put on a list
}

// stir is told that a bucket has got another row.
func (l *lanes) stir(bucket int64, bad bool) {
	if bad && bucket > l.troubled {
		l.troubled = bucket
	}
	if bucket < l.at {
		l.at = 0 // late: the sums are made anew
	}
}

// unsettled is the first bucket at t that burn rates with long windows have not summed up.
func unsettled(t int64) int64 { return floorDiv(t-burnSettles, burnBuckets) * burnBuckets }

// slide brings the sums up to windows that end before t.
func (s *series) slide(t int64, pl *plan) {
	if s.at == t {
		return
	}
	if s.at != t-1 || s.sums == nil {
		s.sumUp(t, pl)
		return
	}
	if s.last < t-1 {
		s.slideSilent(t, pl)
		return
	}
	stride, windows := len(pl.windows)+1, pl.windows
	x := placeOf(t - 1)
	for c := range s.cols {
		if s.cols[c].width == 0 {
			continue
		}
		sums := s.sums[c*stride : (c+1)*stride]
		v := uint32(s.get(c, x))
		data := s.column(c)
		switch s.cols[c].width {
		case 1:
			data = data[:ringBuckets]
			for i, w := range windows {
				p := x - w
				if p < 0 {
					p += int(ringBuckets)
				}
				sums[i] += v - uint32(data[p])
			}
		case 2:
			for i, w := range windows {
				p := x - w
				if p < 0 {
					p += int(ringBuckets)
				}
				sums[i] += v - uint32(binary.LittleEndian.Uint16(data[2*p:]))
			}
		default:
			for i, w := range windows {
				p := x - w
				if p < 0 {
					p += int(ringBuckets)
				}
				sums[i] += v - uint32(s.get(c, p))
			}
		}
		sums[stride-1] += v
		if pl.settles && unsettled(t) != unsettled(t-1) {
			sums[stride-1] -= uint32(s.ring.sum(c, unsettled(t-1), unsettled(t)))
		}
	}
	s.at = t
}

// slideSilent is slide where the newest bucket has no rows.
func (s *series) slideSilent(t int64, pl *plan) {
	stride, x := len(pl.windows)+1, placeOf(t-1)
	silent := int(t - 1 - s.last)
	for c := range s.cols {
		if s.cols[c].width == 0 {
			continue
		}
		sums := s.sums[c*stride : (c+1)*stride]
		for i, w := range pl.windows {
			if w < silent {
				continue // what a shorter window loses is silence, too
			}
			p := x - w
			if p < 0 {
				p += int(ringBuckets)
			}
			sums[i] -= uint32(s.get(c, p))
		}
		if pl.settles && unsettled(t) != unsettled(t-1) {
			from, to := s.within(unsettled(t-1), unsettled(t))
			sums[stride-1] -= uint32(s.ring.sum(c, from, to))
		}
	}
	s.at = t
}

// sumUp makes the sums anew.
func (s *series) sumUp(t int64, pl *plan) {
	stride := len(pl.windows) + 1
	if len(s.sums) != len(s.cols)*stride {
		s.sums = make([]uint32, len(s.cols)*stride)
	}
	for c := range s.cols {
		sums := s.sums[c*stride : (c+1)*stride]
		for i, w := range pl.windows {
			from, to := s.within(t-int64(w), t)
			sums[i] = uint32(s.ring.sum(c, from, to))
		}
		if pl.settles {
			from, to := s.within(unsettled(t), t)
			sums[stride-1] = uint32(s.ring.sum(c, from, to))
		}
	}
	s.at = t
}

// huge tells that the sums may not hold in 32 bits: then they say nothing.
func (s *series) huge() bool {
	for _, c := range s.cols {
		if c.width == 8 {
			return true
		}
	}
	return false
}

// lane is the sum of one column in one window.
func (s *series) lane(col, window, stride int) uint64 { return uint64(s.sums[col*stride+window]) }
