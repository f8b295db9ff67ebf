package evidencebench

import (
	"fmt"
	"math"
)

// budgetPicture shows the pages of quiet days beside what the budget allows.
func (o *Outcome) budgetPicture() *picture {
	const left, barWidth, groupGap = 60.0, 26.0, 34.0
	most := 1.0
	for i := range o.Places {
		for _, c := range o.Places[i].Calibrated {
			most = math.Max(most, math.Max(float64(UpperPoisson(c.Allowed)), math.Max(float64(c.NominalFirst), float64(c.NominalNext))))
		}
	}
	perWorld := float64(len(Budgets)) * (3*barWidth + groupGap)
	x := newPicture("False pages of quiet days beside the budget", left+float64(len(o.Places))*(perWorld+16)+10, 370)
	x.key(left-40, 26, hue{"f4 pale", fmt.Sprintf("as shipped, first %d days", o.Run.Days)}, hue{"f4", fmt.Sprintf("as shipped, next %d days", o.Run.Days)},
		hue{"f3", fmt.Sprintf("calibrated on the first, next %d days", o.Run.Days)})
	x.text(left-40, 46, "", "Thick line: what the budget allows in all seeds together; thin line: the upper 95% bound of chance. A bar above the thin line breaks the budget.")
	fy := axis{0, math.Sqrt(most * 1.1), 300, 74, false}
	y := func(v float64) float64 { return fy.at(math.Sqrt(v)) } // small counts matter as much as large ones
	for _, v := range []float64{0, 1, 5, 10, 25, 50, 100, 200, 400, 800} {
		if v <= most*1.1 {
			x.line(left, y(v), x.width-10, y(v), "grid")
			x.text(left-6, y(v)+4, "end", fmt.Sprint(v))
		}
	}
	at := left + 14
	for i := range o.Places {
		p := &o.Places[i]
		x.text(at, 356, "head", fmt.Sprintf("%s, %d seeds", p.World.Kind.Name, len(p.World.Each)))
		for _, c := range p.Calibrated {
			x.bars(c, at, y)
			x.text(at+1.5*barWidth, 318, "mid", fmt.Sprintf("1 per %.0fd", c.Days))
			at += 3*barWidth + groupGap
		}
		at += 16
	}
	return x
}

func (x *picture) bars(c Calibrated, at float64, y func(float64) float64) {
	const barWidth = 26.0
	for j, v := range []int{c.NominalFirst, c.NominalNext, c.Next} {
		class, what := [...]string{"f4 pale bar", "f4 bar", "f3 bar"}[j], [...]string{"as shipped, first days", "as shipped, days after", "calibrated, days after"}[j]
		x.rect(at+float64(j)*barWidth+2, y(float64(v)), barWidth-4, y(0)-y(float64(v))+0.5, class, fmt.Sprintf("%s: %d pages", what, v))
		x.text(at+float64(j)*barWidth+barWidth/2, y(float64(v))-4, "mid", fmt.Sprint(v))
	}
	x.line(at-3, y(c.Allowed), at+3*barWidth+3, y(c.Allowed), "limit")
	x.line(at-3, y(float64(UpperPoisson(c.Allowed))), at+3*barWidth+3, y(float64(UpperPoisson(c.Allowed))), "frame")
}

// sweepPicture shows what ±50% of each constant does: bars are delays relative to those as shipped, figures are false pages.
func (o *Outcome) sweepPicture() *picture {
	const nameWidth, panel, gap, rowHeight, top = 250.0, 176.0, 32.0, 17.0, 84.0
	all := pairs(o.Sweep)
	n := len(all)
	x := newPicture("What half and one and a half times each constant do to delays and to false pages", nameWidth+4*(panel+gap)+250, top+float64(n)*rowHeight*1.9+30)
	x.key(20, 26, hue{"f1", "half"}, hue{"f4", "one and a half times"})
	x.text(20, 46, "", "Bars: median delay relative to that as shipped. Figures at the right: false pages in the three worlds, at half → at one and a half times.")
	was := o.Sweep[0]
	panels := make([]axis, len(swept))
	for j, c := range swept {
		from := nameWidth + float64(j)*(panel+gap)
		panels[j] = axis{0.5, 2, from, from + panel, true}
		x.text(from+panel/2, top-18, "mid head", fmt.Sprintf("%s: %s min", Classes[c].Short, figure(was.Delay[j])))
		for _, v := range []float64{0.5, 1, 2} {
			x.line(panels[j].at(v), top-4, panels[j].at(v), x.height-26, "grid")
			x.text(panels[j].at(v), x.height-12, "mid", fmt.Sprintf("×%v", v))
		}
	}
	right := nameWidth + 4*(panel+gap) + 8
	x.text(right, top-18, "head", fmt.Sprintf("false: %s as shipped", falseOf(was)))
	for i, c := range all {
		y := top + float64(i)*rowHeight*1.9
		lo, hi := c.half, c.more
		x.text(nameWidth-10, y+17, "end", lo.Name)
		for j := range swept {
			for k, s := range []*Sensitivity{lo, hi} {
				ratio := s.Delay[j] / was.Delay[j]
				if math.IsNaN(ratio) {
					continue // missed either way
				}
				a, b := panels[j].at(1), panels[j].at(ratio)
				x.rect(math.Min(a, b), y+4+float64(k)*11, math.Abs(a-b), 10, fmt.Sprintf("f%d bar", 1+3*k), fmt.Sprintf("%s = %.4g: %s minutes", s.Name, s.Value, figure(s.Delay[j])))
			}
		}
		class := ""
		if falseOf(lo) != falseOf(was) || falseOf(hi) != falseOf(was) {
			class = "head"
		}
		x.text(right, y+17, class, falseOf(lo)+" → "+falseOf(hi))
	}
	return x
}

func falseOf(s *Sensitivity) (out string) {
	for i, n := range s.False {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprint(n)
	}
	return out
}
