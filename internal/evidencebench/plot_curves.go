package evidencebench

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

var familyKey = func() (out []hue) {
	for f := range families {
		out = append(out, hue{fmt.Sprintf("f%d", f), f.String()})
	}
	return out
}()

const (
	panelWidth, panelHeight = 300.0, 210.0
	minutesLow              = 0.1
	falseHigh               = 1000.0
)

// curves draws, for each row of the comparison, the least delay that each family can have for a number of false pages.
func (o *Outcome) curves(p *Place, rs []row) *picture {
	const perLine = 3
	lines := (len(rs) + perLine - 1) / perLine
	x := newPicture("Median delay against false pages in 30 days, "+p.World.Kind.Name+" world: each family of rules at its best setting for every number of false pages",
		40+perLine*(panelWidth+20), 66+float64(lines)*(panelHeight+80))
	x.key(20, 26, familyKey...)
	x.text(20, 44, "", "Lower and further left is better. Lines: the best setting for so many false pages. Large dot: as shipped; small dots: as in the books; dashed: one in 30 days.")
	for i, r := range rs {
		left := 20 + 34 + float64(i%perLine)*(panelWidth+20)
		top := 96 + float64(i/perLine)*(panelHeight+80)
		o.panel(x, p, r, left, top)
	}
	return x
}

func (o *Outcome) panel(x *picture, p *Place, r row, left, top float64) {
	w, h := panelWidth-40, panelHeight
	floor := 0.5 / p.World.Months // where none at all is drawn
	fx := axis{floor, falseHigh, left, left + w, true}
	fy := axis{minutesLow, 500, top + h, top, true}
	name, detail, _ := strings.Cut(r.name, ": ")
	x.text(left-30, top-22, "head", name)
	x.text(left-30, top-7, "", detail)
	for _, v := range []float64{0.1, 1, 10, 100, 1000} {
		if v > floor*3 {
			x.line(fx.at(v), top, fx.at(v), top+h, "grid")
			x.text(fx.at(v), top+h+14, "mid", fmt.Sprint(v))
		}
	}
	x.text(fx.at(floor), top+h+14, "mid", "0")
	for _, v := range []float64{0.1, 1, 10, 60, 360} {
		x.line(left, fy.at(v), left+w, fy.at(v), "grid")
		x.text(left-5, fy.at(v)+4, "end", minutesWord(v))
	}
	x.line(fx.at(1), top, fx.at(1), top+h, "frame dash")
	x.text(left+w/2, top+h+29, "mid", "false pages in 30 days")
	for f := range families {
		if pts := front(p.Fronts[f], r, fx, fy); len(pts) > 0 {
			x.poly(fmt.Sprintf("f%d", f), pts)
		}
	}
	for _, n := range nominal {
		q := o.of(p.World.All, p.World.Months, p.Site.Traces, o.g.find(n.Setting), rivalLevels.zero())
		if d := r.delay(&q); !math.IsInf(d, 1) {
			x.dot(fx.at(q.False), fy.at(d), 3, fmt.Sprintf("f%d", n.Family), fmt.Sprintf("%s: %s minutes, %s false pages in 30 days", n.name, figure(d), rate(q.False)))
		}
	}
	if d := r.delay(&p.Ours); !math.IsInf(d, 1) {
		x.dot(fx.at(p.Ours.False), fy.at(d), 6, "f4", fmt.Sprintf("Tocsin as shipped: %s minutes, %s false pages in 30 days", figure(d), rate(p.Ours.False)))
	}
}

// front is the staircase of the least delay for at most so many false pages.
func front(ps []Point, r row, fx, fy axis) (out [][2]float64) {
	order := slices.Clone(ps)
	slices.SortStableFunc(order, func(a, b Point) int {
		switch {
		case a.False != b.False:
			if a.False < b.False {
				return -1
			}
			return 1
		case r.delay(&a) < r.delay(&b):
			return -1
		case r.delay(&a) > r.delay(&b):
			return 1
		}
		return 0
	})
	best := math.Inf(1)
	for i := range order {
		d := r.delay(&order[i])
		if !(d < best) {
			continue
		}
		if len(out) > 0 {
			out = append(out, [2]float64{fx.at(order[i].False), fy.at(best)})
		}
		best = d
		out = append(out, [2]float64{fx.at(order[i].False), fy.at(d)})
	}
	if len(out) > 0 {
		out = append(out, [2]float64{fx.at(falseHigh), fy.at(best)})
	}
	return out
}

func minutesWord(v float64) string {
	switch {
	case v < 1:
		return fmt.Sprintf("%.0f s", v*60)
	case v < 60:
		return fmt.Sprintf("%.0f m", v)
	}
	return fmt.Sprintf("%.0f h", v/60)
}
