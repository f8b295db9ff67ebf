package ruletest

import (
	"errors"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tocsin-project/tocsin/internal/detect"
	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// resultRow is one row that a query returns: its columns, of which value is the number. Without a value it is NULL.
type resultRow struct{ detect.AnswerRow }

func (r *resultRow) UnmarshalStrict(n *yaml.Node) error {
	var columns map[string]string
	if err := strictyaml.DecodeNode(n, &columns); err != nil {
		return err
	}
	text, ok := columns["value"]
	delete(columns, "value")
	if !ok {
		text = "NaN"
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return strictyaml.PosOf(n).Errorf("value %q is no number", text)
	}
	r.AnswerRow = detect.AnswerRow{Labels: columns, Value: detect.Number(v)}
	return nil
}

func asks(set *rule.Set, alert string) bool {
	for _, r := range set.Rules() {
		if r.Alert == alert {
			return r.Kind == "sql"
		}
	}
	return false
}

// answers are what the queries that are due b after the start return: each at once, as a fast database answers.
func (t *test) answers(set *rule.Set, start time.Time, b time.Duration) (out []detect.Answer) {
	at := start.Add(b)
	for gi := range set.Groups {
		g := &set.Groups[gi]
		for ri := range g.Rules {
			q, ok := detect.QuestionAt(g, &g.Rules[ri], at)
			if !ok || !q.At.Equal(at) {
				continue
			}
			for i := range t.Input {
				l := &t.Input[i]
				if l.Result != q.Rule || b < l.From.Std() || b >= l.To.Std() {
					continue
				}
				var rows []detect.AnswerRow
				for _, r := range l.Rows {
					rows = append(rows, r.AnswerRow)
				}
				var err error
				if l.Error != "" {
					err = errors.New(l.Error)
				}
				answer, _ := q.Answered(rows, err)
				out = append(out, answer)
				break
			}
		}
	}
	return out
}
