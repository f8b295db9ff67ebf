package rule

import (
	"fmt"
	"math"
	"strings"
	"text/template"
	"time"

	"github.com/tocsin-project/tocsin/internal/signal"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// TemplateData is what a label's or annotation's template sees, as $labels, $value, $externalLabels, $activeAt and $partial.
type TemplateData struct {
	Labels         map[string]string
	ExternalLabels map[string]string
	Value          float64
	ActiveAt       time.Time
	Partial        bool // data was missing when this was judged
}

const prelude = `{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$value := .Value}}{{$activeAt := .ActiveAt}}{{$partial := .Partial}}`

var templateFuncs = template.FuncMap{
	"humanize":           humanize,
	"humanizePercentage": func(v float64) string { return fmt.Sprintf("%.4g%%", v*100) },
	"humanizeDuration":   humanizeDuration,
	"toUpper":            strings.ToUpper,
	"toLower":            strings.ToLower,
}

// Render expands one text. A text without templates costs nothing.
func Render(text string, d TemplateData) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	t, err := template.New("").Funcs(templateFuncs).Option("missingkey=zero").Parse(prelude + text)
	if err != nil {
		return "", fmt.Errorf("template %q: %w", text, err)
	}
	var b strings.Builder
	if err := t.Execute(&b, d); err != nil {
		return "", fmt.Errorf("template %q: %w", text, err)
	}
	return b.String(), nil
}

// lint finds what is well-formed and still wrong.
func (r *Rule) lint(g *Group) (errs strictyaml.Errors) {
	if i := g.Interval.Std(); i%signal.BucketSize != 0 {
		errs = append(errs, g.Pos.Errorf("interval %s: want a multiple of %s, the detector's tick", g.Interval, signal.BucketSize))
	}
	errs = append(errs, r.checkOffset(g)...)
	for _, name := range SortedKeys(r.Labels) {
		l := r.Labels[name]
		if strings.Contains(l.Value, "$value") || strings.Contains(l.Value, ".Value") {
			// A label is part of a finding's identity: a value in it makes a new finding at each evaluation, and `for` never ends.
			errs = append(errs, l.Pos.Errorf("label %q contains $value, so every evaluation would be another finding; put it into an annotation", name))
		}
		errs = append(errs, tryTemplate(name, l)...)
	}
	for _, name := range SortedKeys(r.Annotations) {
		errs = append(errs, tryTemplate(name, r.Annotations[name])...)
	}
	if s, ok := r.Labels["severity"]; ok {
		if !isSeverity(s.Value) {
			errs = append(errs, s.Pos.Errorf("severity %q is none of %s", s.Value, severities))
		}
	}
	return errs
}

func tryTemplate(name string, l strictyaml.Located[string]) (errs strictyaml.Errors) {
	if _, err := Render(l.Value, TemplateData{Labels: map[string]string{}, ExternalLabels: map[string]string{}}); err != nil {
		errs = append(errs, l.Pos.Errorf("%s: %v", name, err))
	}
	return errs
}

func humanize(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprintf("%.4g", v)
	}
	units, i := []string{"", "k", "M", "G", "T", "P"}, 0
	for math.Abs(v) >= 1000 && i < len(units)-1 {
		v /= 1000
		i++
	}
	return fmt.Sprintf("%.4g%s", v, units[i])
}

func humanizeDuration(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprintf("%.4g", v)
	}
	return time.Duration(v * float64(time.Second)).Round(time.Second).String()
}
