package evidence

import (
	"fmt"
	"strings"
)

// Explanation is why a key is as it is judged: one sentence and one small table.
type Explanation struct {
	Sentence string
	Rows     []Row // from the oldest to now
}

// Row is one stretch of the last two hours.
type Row struct {
	From, To  int // minutes ago
	N, F      uint64
	Tolerated float64 // bad ones at most, were all normal
	Evidence  float64 // in decades, at its end
}

// Words are how the counts are spoken of: "writes", "failed".
type Words struct{ Things, Bad string }

var stretches = []int{120, 60, 30, 15, 10, 5, 3, 2, 1, 0}

// Explain tells what speaks for and against trouble now.
func (k *Key) Explain(w Words) Explanation {
	e, score := k.Excess(), k.Score()
	x := Explanation{Sentence: k.sentence(w, e, score)}
	for i := 0; i+1 < len(stretches); i++ {
		r := Row{From: stretches[i], To: stretches[i+1], Evidence: score}
		for back := r.To; back < r.From; back++ {
			n, f, ok := k.ago(back)
			if ok {
				r.N, r.F = r.N+n, r.F+f
			}
		}
		if k.minute-int64(r.To) < k.born || r.N == 0 && r.From > r.To+1 {
			continue
		}
		if r.To > 0 {
			r.Evidence = float64(k.scores[slot(k.minute-int64(r.To))]) / 10
		}
		r.Tolerated = float64(r.N) * k.null.p0
		x.Rows = append(x.Rows, r)
	}
	return x
}

// ago are the counts of the minute that began so many minutes before the open one.
func (k *Key) ago(back int) (n, f uint64, ok bool) {
	if back == 0 {
		return k.n, k.f, true
	}
	m := k.minute - int64(back)
	return uint64(k.ns[slot(m)]), uint64(k.fs[slot(m)]), m >= k.born
}

func (k *Key) sentence(w Words, e Excess, score float64) string {
	if !k.Ready() {
		return fmt.Sprintf("watched for %s, too little to conclude anything", minutes(int(k.minute-k.born)))
	}
	var b strings.Builder
	if k.model.Unbounded {
		fmt.Fprintf(&b, "%d %s in %s, usually %s, at most %s by chance and drift", e.F, w.Things, minutes(e.Minutes),
			figure(e.Expected), figure(float64(e.N)*k.null.p0))
	} else {
		fmt.Fprintf(&b, "%d of %d %s %s in %s (%s), usually %s, at most %s by chance and drift", e.F, e.N, w.Things, w.Bad,
			minutes(e.Minutes), percent(float64(e.F)/max(1, float64(e.N))), percent(k.null.level), percent(k.null.p0))
	}
	fmt.Fprintf(&b, ": evidence %+.1f", score)
	if score < 0 {
		b.WriteString(", which is not enough")
	}
	if age := k.minute - k.born; age < day {
		fmt.Fprintf(&b, " (known for %s)", minutes(int(age)))
	}
	return b.String()
}

// String is the sentence and the table as plain text.
func (x Explanation) String() string {
	var b strings.Builder
	b.WriteString(x.Sentence)
	b.WriteString("\nminutes ago        all    bad  normal≤  evidence")
	for _, r := range x.Rows {
		span := fmt.Sprintf("%d–%d", r.From, r.To)
		fmt.Fprintf(&b, "\n%-11s %10d %6d %8s %9.1f", span, r.N, r.F, figure(r.Tolerated), r.Evidence)
	}
	return b.String()
}

func minutes(n int) string {
	switch {
	case n == 1:
		return "1 minute"
	case n >= 2*day:
		return fmt.Sprintf("%d days", n/day)
	case n > 2*hour:
		return fmt.Sprintf("%d hours", n/hour)
	}
	return fmt.Sprintf("%d minutes", n)
}

func percent(p float64) string { return fmt.Sprintf("%.3g%%", 100*p) }

func figure(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.2g", v)
	}
	return fmt.Sprintf("%.0f", v)
}
