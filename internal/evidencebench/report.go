package evidencebench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Budgets are those that quiet days are held against: one false page in so many days.
var Budgets = []float64{7, 30, 90}

// nominal are the rivals as their books have them.
var nominal = []struct {
	name string
	Setting
}{
	{"burn rate, objective 99.9%", Setting{BurnObjective, 0, 1, 0}},
	{"burn rate, learned rates", Setting{BurnLearned, 3, 1, 0}},
	{"burn rate, learned rates, ≥ 30 failures an hour", Setting{BurnLearned, 3, 30, 0}},
	{"share over 5% in 5 min, ≥ 10 failures", Setting{Share, 7, 10, 0}},
	{"4 sd in 5 min, ≥ 10 failures", Setting{Deviation, 10, 10, 0}},
}

// Outcome is what all figures of a report are worked out from, once.
type Outcome struct {
	*Measured
	Places []Place
}

// Place is one world with its incidents.
type Place struct {
	World      *World
	Site       *Site
	Ours       Point
	Claims     []Claim
	Calibrated []Calibrated // one for each budget
	// The fastest setting of Tocsin's own grid with at most one false page in 30 days, and the claims for it where the shipped one has more.
	Tuned       *Point
	TunedClaims []Claim
	Fronts      [families][]Point
}

// Conclude works out the claims.
func (m *Measured) Conclude() *Outcome {
	out := &Outcome{Measured: m}
	for i := range m.Worlds {
		w, s := &m.Worlds[i], &m.Sites[i]
		p := Place{World: w, Site: s, Ours: m.of(w.All, w.Months, s.Traces, m.g.shipped(), evidenceLevels.zero())}
		p.Fronts = m.sweepAll(w.All, w.Months, s.Traces)
		p.Claims = Compare(&p.Fronts, p.Ours)
		p.Tuned = least(p.Fronts[Tocsin], func(x *Point) bool { return x.False <= 1 }, func(x *Point) float64 { return x.Mean[All] })
		if p.Ours.False > 1 && p.Tuned != nil {
			p.TunedClaims = Compare(&p.Fronts, *p.Tuned)
		}
		for _, days := range Budgets {
			if m.Run.Calibrate {
				p.Calibrated = append(p.Calibrated, m.Calibrate(w, s, days))
			}
		}
		out.Places = append(out.Places, p)
	}
	return out
}

// Words of a point's setting.
func (m *Measured) Words(p *Point) string {
	if p == nil {
		return "–"
	}
	return m.g.settings[p.Setting].Words(m.g.levels(p.Setting).score(p.Level))
}

// Write makes the report as Markdown.
func (o *Outcome) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "A world has %d keys: %d paths and %d slices of %d services. Incidents: %d seeds of each class. CPU time %s.\n",
		Keys, services*perService, sliced*perSliced, services, o.Run.Incidents, o.Took.Round(time.Second))
	o.budgets(&b)
	for i := range o.Places {
		o.place(&b, &o.Places[i])
	}
	o.elsewhere(&b)
	o.firstDay(&b)
	o.sensitivity(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (o *Outcome) budgets(b *strings.Builder) {
	if !o.Run.Calibrate {
		return
	}
	fmt.Fprintf(b, "\n### Quiet days: the budget and what came of it\n\nFalse pages in all seeds together. As shipped: in the first %[1]d days of each seed, the first day included, and in the "+
		"%[1]d after them. Calibrated: the setting was chosen for each seed by its first %[1]d days, and these are the pages of the *next* %[1]d. Delays: geometric means over the eight classes, "+
		"and over the six sudden ones, in minutes.\n\n| world | budget | allowed | upper 95%% bound | shipped, first | shipped, next | calibrated, next | delay shipped | delay calibrated |\n|---|---|---|---|---|---|---|---|---|\n", o.Run.Days)
	for i := range o.Places {
		p := &o.Places[i]
		for _, c := range p.Calibrated {
			top := UpperPoisson(c.Allowed)
			mark := func(n int) string {
				if n > top {
					return fmt.Sprintf("**%d**", n)
				}
				return fmt.Sprint(n)
			}
			fmt.Fprintf(b, "| %s, %d seeds | 1 per %.0fd | %.1f | %d | %s | %s | %s | %s, %s | %s, %s |\n", p.World.Kind.Name, c.Seeds, c.Days, c.Allowed, top, mark(c.NominalFirst), mark(c.NominalNext),
				mark(c.Next), figure(c.Nominal[All]), figure(c.Nominal[Sudden]), figure(c.Delay[All]), figure(c.Delay[Sudden]))
		}
	}
	b.WriteString("\nWhat was chosen for a budget of 1 per 30 days, by how many seeds:\n\n")
	for i := range o.Places {
		p := &o.Places[i]
		for _, c := range p.Calibrated {
			if c.Days == BudgetDays {
				fmt.Fprintf(b, "- %s: %s\n", p.World.Kind.Name, strings.Join(o.tallyOf(c.Chosen), "; "))
			}
		}
	}
}

// tallyOf counts equal settings, in the order in which they first come.
func (o *Outcome) tallyOf(ps []Point) (out []string) {
	count := map[string]int{}
	var order []string
	for i := range ps {
		s := o.Words(&ps[i])
		if count[s]++; count[s] == 1 {
			order = append(order, s)
		}
	}
	for _, s := range order {
		out = append(out, fmt.Sprintf("%d × %s", count[s], s))
	}
	return out
}

func (o *Outcome) place(b *strings.Builder, p *Place) {
	fmt.Fprintf(b, "\n### %s\n\n%.0f months, %d seeds of incidents. One setting for all classes: as shipped or as in the books, and then the best of each family's grid with at most %s in 30 days. "+
		"Delays are medians in minutes; “–” is missed.\n\n", title(p.World.Kind.Name), p.World.Months, o.Run.Incidents, pagesOf(max(1, p.Ours.False)))
	b.WriteString("| method | false in 30 days |")
	for _, c := range Classes {
		fmt.Fprintf(b, " %s |", c.Short)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(Classes)) + "\n")
	line := func(name string, x *Point) {
		fmt.Fprintf(b, "| %s | %s |", name, rate(x.False))
		for _, d := range x.Median {
			fmt.Fprintf(b, " %s |", figure(d))
		}
		b.WriteString("\n")
	}
	line("**Tocsin as shipped**", &p.Ours)
	for _, n := range nominal {
		x := o.of(p.World.All, p.World.Months, p.Site.Traces, o.g.find(n.Setting), rivalLevels.zero())
		line(n.name, &x)
	}
	for f := range Tocsin {
		if x := p.Claims[0].Equal[f].SingleAt; x != nil {
			line("best: "+f.String()+": "+o.Words(x), x)
		}
	}
	if p.Tuned != nil {
		line("best: Tocsin: "+o.Words(p.Tuned), p.Tuned)
	}
	o.claims(b, p, p.Claims, "Tocsin as shipped")
	if p.TunedClaims != nil {
		o.claims(b, p, p.TunedClaims, "Tocsin with "+o.Words(p.Tuned))
	}
}

func (o *Outcome) claims(b *strings.Builder, p *Place, cs []Claim, name string) {
	fmt.Fprintf(b, "\n%s against the best rival of each row. Equal pages: the rival may have %s in 30 days. Equal delay: the fewest false pages of all rivals' settings that are no slower in the row "+
		"(Tocsin: %s in 30 days, %s at most by the 95%% bound).\n\n", name, pagesOf(max(1, cs[0].OursAt.False)), rate(cs[0].OursAt.False), rate(UpperRate(cs[0].OursAt.False, p.World.Months)))
	b.WriteString("| incident | Tocsin | all-knowing | rivals, one setting | promise | rivals, a setting for this row | promise | rivals' false pages at equal delay | at most a tenth |\n|---|---|---|---|---|---|---|---|---|\n")
	for i := range cs {
		c := &cs[i]
		single, own := c.Best(true), c.Best(false)
		fewest, tenth := "no setting is as fast", "met"
		if f := c.Fewest(); f != Tocsin {
			s := c.Equal[f].Same
			fewest = fmt.Sprintf("%s (%s)", rate(s.False), o.Words(s))
			tenth = met(c.AtEqualDelay(&c.Equal[f], p.World.Months))
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s (%s) | %s | %s (%s) | %s | %s | %s |\n", c.Name, figure(c.Ours), oracle(c), figure(c.Equal[single].Single), single,
			met(c.AtEqualPages(c.Equal[single].Single)), figure(c.Equal[own].Own), o.Words(c.Equal[own].OwnAt), met(c.AtEqualPages(c.Equal[own].Own)), fewest, tenth)
	}
	o.families(b, p, cs)
}

// families is the same by family, for groups of classes, and how many of the promises are met.
func (o *Outcome) families(b *strings.Builder, p *Place, cs []Claim) {
	b.WriteString("\nBy family: the least delay with so many false pages, and the fewest false pages at Tocsin's delay.\n\n| family |")
	for _, c := range cs[len(Classes):] {
		name, _, _ := strings.Cut(c.Name, ":")
		fmt.Fprintf(b, " %s: delay | false pages |", name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", 2*int(groups)) + "\n| **Tocsin** |")
	for _, c := range cs[len(Classes):] {
		fmt.Fprintf(b, " %s | %s |", figure(c.Ours), rate(c.OursAt.False))
	}
	for f := range Tocsin {
		fmt.Fprintf(b, "\n| %s |", f)
		for _, c := range cs[len(Classes):] {
			fewest := "none is as fast"
			if s := c.Equal[f].Same; s != nil {
				fewest = rate(s.False)
			}
			fmt.Fprintf(b, " %s | %s |", figure(c.Equal[f].Own), fewest)
		}
	}
	single, own, tenth := Met(cs[:len(Classes)], p.World.Months)
	fmt.Fprintf(b, "\n\nOf the %d classes the promise at equal pages is met in %d against one setting and in %d against a setting for each; at equal delay in %d.\n", len(Classes), single, own, tenth)
}

// Met counts the promises that are kept against the best rival: at equal pages with one setting, with one for each row, and at equal delay.
func Met(cs []Claim, months float64) (single, own, tenth int) {
	for i := range cs {
		c := &cs[i]
		if c.AtEqualPages(c.Equal[c.Best(true)].Single) {
			single++
		}
		if c.AtEqualPages(c.Equal[c.Best(false)].Own) {
			own++
		}
		if f := c.Fewest(); f == Tocsin || c.AtEqualDelay(&c.Equal[f], months) {
			tenth++
		}
	}
	return single, own, tenth
}

// elsewhere takes the settings that are best in the first world to the others.
func (o *Outcome) elsewhere(b *strings.Builder) {
	if len(o.Places) < 2 {
		return
	}
	fmt.Fprintf(b, "\n### Settings taken elsewhere\n\nFalse pages in 30 days of the settings that are best in the %s world.\n\n| setting |", o.Places[0].World.Kind.Name)
	for i := range o.Places {
		fmt.Fprintf(b, " %s |", o.Places[i].World.Kind.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(o.Places)) + "\n")
	line := func(name string, setting, level int) {
		fmt.Fprintf(b, "| %s |", name)
		for i := range o.Places {
			w := o.Places[i].World
			fmt.Fprintf(b, " %s |", rate(float64(w.All[setting][level])/w.Months))
		}
		b.WriteString("\n")
	}
	line("**Tocsin as shipped**", o.g.shipped(), evidenceLevels.zero())
	for f := range Tocsin {
		if x := o.Places[0].Claims[0].Equal[f].SingleAt; x != nil && x.Mean[Sudden] < hour {
			line(f.String()+": "+o.Words(x), x.Setting, x.Level)
		}
	}
}

func (o *Outcome) firstDay(b *strings.Builder) {
	if o.FirstDays == 0 {
		return
	}
	type method struct {
		name           string
		setting, level int
	}
	ms := []method{{"**Tocsin as shipped**", o.g.shipped(), evidenceLevels.zero()}}
	for _, n := range nominal {
		ms = append(ms, method{n.name, o.g.find(n.Setting), rivalLevels.zero()})
	}
	for f := range Tocsin {
		// Those that miss nearly everything are left out.
		if x := o.Places[0].Claims[0].Equal[f].SingleAt; x != nil && x.Mean[Sudden] < hour {
			ms = append(ms, method{"best: " + f.String() + ": " + o.Words(x), x.Setting, x.Level})
		}
	}
	fmt.Fprintf(b, "\n### The first day\n\nFalse pages on %d first days of further realistic worlds, and median delays of incidents on a path that has been known for 1, 3 and 12 hours. "+
		"The rivals' best settings are those of the realistic world.\n\n| method | false a first day | known for |", o.FirstDays)
	for _, c := range Classes {
		fmt.Fprintf(b, " %s |", c.Short)
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(Classes)) + "\n")
	for _, x := range ms {
		for i := range o.Sites {
			s := &o.Sites[i]
			if s.History == 0 {
				continue
			}
			p := o.of(o.FirstDay, float64(o.FirstDays), s.Traces, x.setting, x.level)
			fmt.Fprintf(b, "| %s | %s | %d h |", x.name, rate(p.False), s.History/hour)
			for _, d := range p.Median {
				fmt.Fprintf(b, " %s |", figure(d))
			}
			b.WriteString("\n")
		}
	}
}

func (o *Outcome) sensitivity(b *strings.Builder) {
	if len(o.Sweep) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Sensitivity to ±50%%\n\nOne constant at a time. False: pages in %d days of each world at a budget of 1 per 7 days, so that there is something to count. Delays: medians of %d seeds at 1 per 30 days.\n\n| setting |", o.Run.SweepDays, o.Run.Sweep)
	for _, k := range sweptKinds {
		fmt.Fprintf(b, " %s |", k.Name)
	}
	for _, c := range swept {
		fmt.Fprintf(b, " %s |", Classes[c].Short)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(sweptKinds)+len(swept)) + "\n")
	for _, s := range o.Sweep {
		name := s.Name
		if s.Factor != 1 {
			name = fmt.Sprintf("%s × %.1f = %.4g", s.Name, s.Factor, s.Value)
		}
		fmt.Fprintf(b, "| %s |", name)
		for _, n := range s.False {
			fmt.Fprintf(b, " %d |", n)
		}
		for _, d := range s.Delay {
			fmt.Fprintf(b, " %s |", figure(d))
		}
		b.WriteString("\n")
	}
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "**not met**"
}

func pagesOf(v float64) string {
	if v == 1 {
		return "one false page"
	}
	return rate(v) + " false pages"
}

func rate(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 10:
		return fmt.Sprintf("%.2g", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func figure(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "–"
	case v < 0.1:
		return "< 0.1"
	case v < 20:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
