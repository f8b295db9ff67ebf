package evidencebench

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// picture is one SVG, drawn by hand: the page and the docs show the same ones.
type picture struct {
	b      strings.Builder
	title  string
	width  float64
	height float64
}

func newPicture(title string, width, height float64) *picture {
	return &picture{title: title, width: width, height: height}
}

// style is for both; a picture that stands alone has to bring it along.
const style = `
.ground { fill: #fff } text { font: 12px system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; fill: #59636e } .head { font-size: 13px; font-weight: 600; fill: #1b1f24 } .mid { text-anchor: middle } .end { text-anchor: end }
.grid { stroke: #d8dee4; stroke-width: 1 } .frame { stroke: #8c959f; stroke-width: 1; fill: none } .dash { stroke-dasharray: 5 4 }
.f0 { stroke: #9a6700; fill: #9a6700 } .f1 { stroke: #1f6feb; fill: #1f6feb } .f2 { stroke: #7a5cc4; fill: #7a5cc4 } .f3 { stroke: #1a7f37; fill: #1a7f37 } .f4 { stroke: #c62f2f; fill: #c62f2f }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round } .f4.line { stroke-width: 3 } .area { stroke: none; opacity: .16 } .bar { stroke: none } .pale { opacity: .5 } text.f0, text.f1, text.f2, text.f3, text.f4 { stroke: none } .limit { stroke: #1b1f24; stroke-width: 2 } .ok { fill: #1a7f37; stroke: none }
@media (prefers-color-scheme: dark) {
.ground { fill: #14171a } text { fill: #98a2ad } .head { fill: #e6e9ed } .grid { stroke: #2c323a } .frame { stroke: #6b7580 }
.f0 { stroke: #d4a72c; fill: #d4a72c } .f1 { stroke: #6cb0ff; fill: #6cb0ff } .f2 { stroke: #b79bff; fill: #b79bff } .f3 { stroke: #57ab5a; fill: #57ab5a } .f4 { stroke: #ff7b72; fill: #ff7b72 } .line { fill: none } .limit { stroke: #e6e9ed } .ok { fill: #57ab5a } }
`

func (p *picture) add(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

func (p *picture) text(x, y float64, class, s string) {
	p.add(`<text class="%s" x="%.1f" y="%.1f">%s</text>`, class, x, y, template.HTMLEscapeString(s))
}

func (p *picture) line(x1, y1, x2, y2 float64, class string) {
	p.add(`<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

func (p *picture) poly(class string, points [][2]float64) {
	var b strings.Builder
	for _, q := range points {
		fmt.Fprintf(&b, "%.1f,%.1f ", q[0], q[1])
	}
	p.add(`<polyline class="%s line" points="%s"/>`, class, strings.TrimSpace(b.String()))
}

func (p *picture) rect(x, y, w, h float64, class, tip string) {
	p.add(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"><title>%s</title></rect>`, class, x, y, math.Max(w, 0.5), h, template.HTMLEscapeString(tip))
}

func (p *picture) dot(x, y, r float64, class, tip string) {
	p.add(`<circle class="%s" cx="%.1f" cy="%.1f" r="%.1f"><title>%s</title></circle>`, class, x, y, r, template.HTMLEscapeString(tip))
}

// hue is a colour of the key and what it stands for.
type hue struct{ class, name string }

// key explains the colours in one row.
func (p *picture) key(x, y float64, hues ...hue) {
	for _, h := range hues {
		p.rect(x, y-9, 18, 5, h.class+" bar", h.name)
		p.text(x+24, y-3, "", h.name)
		x += 46 + 6.4*float64(len([]rune(h.name)))
	}
}

// Inline is the picture for a page that has the style.
func (p *picture) Inline() template.HTML {
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`+"\n%s</svg>", p.width, p.height, template.HTMLEscapeString(p.title), p.b.String())) //nolint:gosec // everything that is put in is escaped where it is
}

// Alone is the picture as a file.
func (p *picture) Alone() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`+"\n<style>%s</style>\n<rect class=\"ground\" width=\"%.0f\" height=\"%.0f\" rx=\"8\"/>\n%s</svg>\n",
		p.width, p.height, template.HTMLEscapeString(p.title), style, p.width, p.height, p.b.String())
}

// axis maps values to a stretch of the picture, evenly or by logarithm. Values beyond its ends are put at them.
type axis struct {
	lo, hi   float64
	from, to float64
	log      bool
}

func (a axis) at(v float64) float64 {
	v = math.Min(math.Max(v, a.lo), a.hi)
	if a.log {
		return a.from + (a.to-a.from)*math.Log(v/a.lo)/math.Log(a.hi/a.lo)
	}
	return a.from + (a.to-a.from)*(v-a.lo)/(a.hi-a.lo)
}
