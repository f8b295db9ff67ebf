package console

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// Series is one curve over event time: the failure share of a service, an area or a path.
type Series struct {
	Name   string
	Points []Point // ascending in time; a gap in the data is simply no point
}

// Point is one value of a curve.
type Point struct {
	At    time.Time
	Share float64 // 0–1
}

// The area that a curve is drawn in, in units of the picture, and how many curves a page has.
const (
	chartWidth  = 240
	chartHeight = 48
	maxCharts   = 12
)

// chart is a Series as the page draws it. All charts of a page share one time axis; each has a scale of its own,
// which its text tells, because a service that fails 5% of writes must not look healthy beside one that fails 96%.
type chart struct {
	Name     string
	Peak     float64
	From, To time.Time
	Line     string // points of a polyline
	Marks    []mark
}

// mark is a moment that the chart points out.
type mark struct {
	What string
	X    string
}

func draw(all []Series, in incident.Incident) []chart {
	var from, to time.Time
	all = slices.DeleteFunc(slices.Clone(all), func(s Series) bool { return len(s.Points) < 2 })
	for _, s := range all {
		first, last := s.Points[0].At, s.Points[len(s.Points)-1].At
		if from.IsZero() || first.Before(from) {
			from = first
		}
		if last.After(to) {
			to = last
		}
	}
	x := func(t time.Time) string { return decimal(float64(t.Sub(from)) / float64(to.Sub(from)) * chartWidth) }
	var marks []mark
	for _, m := range []struct {
		what string
		at   time.Time
	}{{"declared", in.DeclaredAt}, {"mitigated", in.MitigatedAt}} {
		if m.at.After(from) && m.at.Before(to) {
			marks = append(marks, mark{m.what, x(m.at)})
		}
	}
	var charts []chart
	for _, s := range all {
		c := chart{Name: s.Name, From: from, To: to, Marks: marks}
		for _, p := range s.Points {
			c.Peak = max(c.Peak, p.Share)
		}
		for _, p := range s.Points {
			y := chartHeight - p.Share/max(c.Peak, 0.001)*chartHeight
			c.Line += x(p.At) + "," + decimal(y) + " "
		}
		charts = append(charts, c)
	}
	slices.SortStableFunc(charts, func(a, b chart) int { return cmp.Compare(b.Peak, a.Peak) })
	return charts[:min(len(charts), maxCharts)]
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
