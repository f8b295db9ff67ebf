package evidencebench

import (
	"fmt"
	"math"
)

// tracesPicture shows evidence as it grows, above the counts that it grows from.
func (o *Outcome) tracesPicture() *picture {
	const w, h, gap = 400.0, 110.0, 92.0
	rows := (len(o.Examples) + 1) / 2
	x := newPicture("Evidence over time in four examples", 60+2*(w+70), 60+float64(rows)*(2*h+gap))
	x.key(30, 26, hue{"f1", "share of requests that fail, by minute"}, hue{"f3", "at most, by chance and drift"}, hue{"f4", "evidence, in powers of ten: at 0 it pages"})
	for i := range o.Examples {
		o.Examples[i].draw(x, 60+float64(i%2)*(w+70), 74+float64(i/2)*(2*h+gap), w, h)
	}
	return x
}

func (e *Example) draw(x *picture, left, top, w, h float64) {
	fx := axis{-e.From, e.To, left, left + w, false}
	peak := 0.0
	for _, m := range e.Minutes {
		peak = math.Max(peak, math.Max(m.Share, m.Tolerated))
	}
	fs := axis{0, peak * 1.1, top + h, top, false}
	fe := axis{-9, 3.5, top + 2*h + 14, top + h + 14, false}
	x.text(left-30, top-12, "head", e.Name)
	for _, v := range []float64{0, peak} {
		x.line(left, fs.at(v), left+w, fs.at(v), "grid")
		x.text(left-6, fs.at(v)+4, "end", fmt.Sprintf("%.2g%%", 100*v))
	}
	for _, v := range []float64{-8, -4, 0} {
		x.line(left, fe.at(v), left+w, fe.at(v), "grid")
		x.text(left-6, fe.at(v)+4, "end", fmt.Sprint(v))
	}
	x.line(left, fe.at(0), left+w, fe.at(0), "limit dash")
	var share, most, evidence [][2]float64
	for _, m := range e.Minutes {
		share = append(share, [2]float64{fx.at(m.At), fs.at(m.Share)})
		most = append(most, [2]float64{fx.at(m.At), fs.at(m.Tolerated)})
		evidence = append(evidence, [2]float64{fx.at(m.At), fe.at(m.Evidence)})
	}
	x.poly("f1", share)
	x.poly("f3 dash", most)
	x.poly("f4", evidence)
	bottom := fe.from
	x.line(fx.at(0), top, fx.at(0), bottom, "frame dash")
	for v := math.Ceil(-e.From/15) * 15; v <= e.To; v += 15 {
		word := fmt.Sprintf("%.0f min", v)
		if v == 0 {
			word = "start"
		}
		x.text(fx.at(v), bottom+16, "mid", word)
	}
	if !math.IsInf(e.Fired, 1) && e.Fired <= e.To {
		x.line(fx.at(e.Fired), top, fx.at(e.Fired), bottom, "f4 frame")
		x.text(fx.at(e.Fired)+6, bottom-8, "head", fmt.Sprintf("pages after %s minutes", figure(e.Fired)))
	}
}
