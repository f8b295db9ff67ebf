package evidencebench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"figure": figure, "rate": rate, "title": title, "top": UpperPoisson, "inc": func(i int) int { return i + 1 },
}).Parse(pageText))

// view is what the page shows.
type view struct {
	*Outcome
	Style     template.CSS
	Budget    *picture
	Sweeps    *picture
	Traces    *picture
	Places    []placeView
	FirstDays []firstDayView
}

type placeView struct {
	*Place
	Curves *picture
	Claims []claimView
	Upper  float64
	Tuned  string
}

type claimView struct {
	*Claim
	Single, Own, Fewest       string
	SingleValue, OwnValue     string
	SingleMet, OwnMet, Tenth  bool
	FewestFalse, FewestFamily string
	Oracle                    string
}

type firstDayView struct {
	Hours int
	Point
}

func (o *Outcome) view() *view {
	v := &view{Outcome: o, Style: template.CSS(style)} //nolint:gosec // a constant
	if o.Run.Calibrate {
		v.Budget = o.budgetPicture()
	}
	if o.Run.Sweep > 0 {
		v.Sweeps, v.Traces = o.sweepPicture(), o.tracesPicture()
	}
	for i := range o.Places {
		p := &o.Places[i]
		x := placeView{Place: p, Curves: o.curves(p, rows()), Upper: UpperRate(p.Ours.False, p.World.Months), Tuned: o.Words(p.Tuned)}
		for j := range p.Claims {
			x.Claims = append(x.Claims, o.claimView(p, &p.Claims[j]))
		}
		v.Places = append(v.Places, x)
	}
	for i := range o.Sites {
		if s := &o.Sites[i]; s.History > 0 {
			v.FirstDays = append(v.FirstDays, firstDayView{s.History / hour, o.of(o.FirstDay, float64(max(1, o.FirstDays)), s.Traces, o.g.shipped(), evidenceLevels.zero())})
		}
	}
	return v
}

func (o *Outcome) claimView(p *Place, c *Claim) claimView {
	single, own := &c.Equal[c.Best(true)], &c.Equal[c.Best(false)]
	v := claimView{
		Claim: c, Single: o.Words(single.SingleAt), Own: o.Words(own.OwnAt), SingleValue: figure(single.Single), OwnValue: figure(own.Own),
		Oracle: oracle(c), SingleMet: c.AtEqualPages(single.Single), OwnMet: c.AtEqualPages(own.Own), Tenth: true, FewestFalse: "none is as fast",
	}
	if f := c.Fewest(); f != Tocsin {
		s := c.Equal[f].Same
		v.Fewest, v.FewestFalse, v.FewestFamily = o.Words(s), rate(s.False), f.String()
		v.Tenth = c.AtEqualDelay(&c.Equal[f], p.World.Months)
	}
	return v
}

// Page writes everything as one HTML page, with nothing from elsewhere.
func (o *Outcome) Page(w io.Writer) error {
	if err := pageTemplate.Execute(w, o.view()); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// Pictures writes the plots into a folder, each as a file that stands alone.
func (o *Outcome) Pictures(dir string) error {
	v := o.view()
	files := map[string]*picture{"evidence-budget.svg": v.Budget, "evidence-sensitivity.svg": v.Sweeps, "evidence-traces.svg": v.Traces}
	names := []string{"evidence-curves.svg", "evidence-curves-drifting.svg", "evidence-curves-heavy.svg"}
	for i := range v.Places {
		files[names[i]] = v.Places[i].Curves
	}
	for name, p := range files {
		if p == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(p.Alone()), 0o644); err != nil { //nolint:gosec // for everybody to read
			return fmt.Errorf("writing a picture: %w", err)
		}
	}
	return nil
}

// ClassNames are the classes in short, for the head of a table.
func (v *view) ClassNames() (out []string) {
	for i := range Classes {
		out = append(out, Classes[i].Short)
	}
	return out
}
