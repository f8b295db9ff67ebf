package page

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/backtest"
)

// The plot's own units; the page scales it to its width.
const (
	width  = 900
	left   = 62
	right  = 12
	high   = 120 // of the curve
	row    = 16  // of a line of bars
	topGap = 22
)

// plot is one recording's picture.
type plot struct {
	Name, Title   string
	Width, Height int
	Curve, Area   string // points
	Axis          int    // y of the time axis
	Ticks         []mark
	Levels        []mark
	Rows          []rowMark
	Bars          []bar
	Quiet         []bar
	Pages         []mark
	Peak          float64
}

type mark struct {
	X, Y  float64
	Label string
	Class string
}

type rowMark struct {
	Y     float64
	Label string
}

type bar struct {
	X, Y, W, H   float64
	Class, Title string
}

// scale puts times on the x axis.
type scale struct{ from, to time.Time }

func (s scale) x(t time.Time) float64 {
	part := float64(t.Sub(s.from)) / math.Max(float64(s.to.Sub(s.from)), 1)
	return math.Round((left+math.Min(math.Max(part, 0), 1)*(width-left-right))*10) / 10
}

// draw makes the picture: the share of failures of all paths together, below it the labels, and what was declared and paged
// by these rules and, where there are some, by the others.
func draw(rec, other *backtest.Recording) plot {
	s := scale{rec.From, rec.To}
	p := plot{Name: rec.Name, Title: fmt.Sprintf("%s: share of failed requests, labels and incidents", rec.Name), Width: width}
	p.curve(rec, s)
	y := float64(topGap + high + 8)
	line := func(label string) float64 {
		p.Rows = append(p.Rows, rowMark{y + row - 4, label})
		y += row
		return y - row
	}
	if l := rec.Labels; l != nil {
		for _, q := range l.Quiet {
			p.Quiet = append(p.Quiet, bar{s.x(q.From), topGap, s.x(q.To) - s.x(q.From), high, "quiet", "quiet " + stamp(q.From) + " – " + stamp(q.To)})
		}
		at := line("labels")
		for _, x := range l.Incidents {
			end := x.End
			if end.IsZero() {
				end = rec.To
			}
			p.bar(s, at, x.Start, end, "label", x.ID)
		}
	}
	p.incidents(s, line("declared"), rec, "declared")
	if other != nil {
		p.incidents(s, line("theirs"), other, "theirs")
	}
	p.Axis = int(y) + 4
	p.Height = p.Axis + 20
	p.times(s)
	return p
}

func (p *plot) bar(s scale, y float64, from, to time.Time, class, title string) {
	w := math.Max(s.x(to)-s.x(from), 2)
	p.Bars = append(p.Bars, bar{s.x(from), y + 2, math.Round(w*10) / 10, row - 5, class, title})
}

func (p *plot) incidents(s scale, y float64, rec *backtest.Recording, class string) {
	for _, in := range declaredOf(rec) {
		end := rec.To
		if in.ResolvedAt != nil {
			end = *in.ResolvedAt
		}
		p.bar(s, y, *in.DeclaredAt, end, class, fmt.Sprintf("%s %s: %s", in.ID, stamp(*in.DeclaredAt), in.Title))
		for _, page := range in.Pages {
			p.Pages = append(p.Pages, mark{X: s.x(page.At), Y: y + row/2, Class: class, Label: "page " + stamp(page.At) + ": " + page.Reason})
		}
	}
}

func (p *plot) curve(rec *backtest.Recording, s scale) {
	for _, t := range rec.Traffic {
		if t.Total > 0 {
			p.Peak = math.Max(p.Peak, float64(t.Failures)/float64(t.Total))
		}
	}
	top := nice(p.Peak)
	y := func(v float64) float64 { return math.Round((topGap+high*(1-v/top))*10) / 10 }
	var b strings.Builder
	first, last := 0.0, 0.0
	for _, t := range rec.Traffic {
		if t.Total == 0 {
			continue
		}
		last = s.x(t.At)
		if first == 0 {
			first = last
		}
		fmt.Fprintf(&b, "%.1f,%.1f ", last, y(float64(t.Failures)/float64(t.Total)))
	}
	p.Curve = strings.TrimSpace(b.String())
	if p.Curve != "" {
		p.Area = fmt.Sprintf("%.1f,%.1f %s %.1f,%.1f", first, y(0), p.Curve, last, y(0))
	}
	for _, v := range []float64{0, top / 2, top} {
		p.Levels = append(p.Levels, mark{Y: y(v), Label: percent(v)})
	}
}

// nice rounds a share up to 1, 2 or 5 of a decade.
func nice(v float64) float64 {
	if v <= 0 {
		return 0.01
	}
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5, 10} {
		if v <= m*decade {
			return math.Min(m*decade, 1)
		}
	}
	return 1
}

var steps = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 24 * time.Hour, 2 * 24 * time.Hour, 7 * 24 * time.Hour}

// times labels the axis, at most nine times.
func (p *plot) times(s scale) {
	step := steps[len(steps)-1]
	for _, d := range steps {
		if s.to.Sub(s.from)/d <= 8 {
			step = d
			break
		}
	}
	format := "15:04"
	if step >= 24*time.Hour {
		format = "02 Jan"
	}
	for t := s.from.UTC().Truncate(step); !t.After(s.to); t = t.Add(step) {
		if !t.Before(s.from) {
			p.Ticks = append(p.Ticks, mark{X: s.x(t), Label: t.Format(format)})
		}
	}
}
