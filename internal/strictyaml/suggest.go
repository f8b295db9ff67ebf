package strictyaml

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxListed is how many known names a hint lists before it becomes noise.
const maxListed = 16

// Enum reads one word of a closed set, for UnmarshalText methods; what names the set in the message ("severity").
func Enum[T ~string](what string, text []byte, known ...T) (T, error) {
	names := make([]string, len(known))
	for i, k := range known {
		if string(k) == string(text) {
			return k, nil
		}
		names[i] = string(k)
	}
	var zero T
	return zero, &Error{Msg: fmt.Sprintf("unknown %s %s", what, quote(string(text))), Hint: hintFor(string(text), names)}
}

// Suggest is the known name that word most probably meant, or "".
func Suggest(word string, known []string) string {
	best, bestDistance := "", max(1, min(3, utf8.RuneCountInString(word)/3))+1
	for _, k := range known {
		if d := distance(fold(word), fold(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

func hintFor(word string, known []string) string {
	if s := Suggest(word, known); s != "" {
		return fmt.Sprintf("did you mean %q?", s)
	}
	if len(known) == 0 || len(known) > maxListed {
		return ""
	}
	sorted := slices.Sorted(slices.Values(known))
	return "known: " + strings.Join(sorted, ", ")
}

// fold makes groupBy, group-by and group_by the same: the usual slips are of spelling convention.
func fold(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(s))
}

// distance counts insertions, deletions, replacements and swaps of neighbours.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if abs(len(x)-len(y)) > 3 || len(x) > 64 {
		return 1 << 10 // too far to matter
	}
	before, last := make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		now := make([]int, len(y)+1)
		now[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last = last, now
	}
	return last[len(y)]
}

func abs(n int) int { return max(n, -n) }

// quote cuts long values: a message is read in a terminal.
func quote(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
