package catalogue

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

type areaWords struct {
	area  string
	words []string // lower case, longest first
}

func (c *Catalogue) indexWords() {
	byArea := map[string][]string{}
	for _, a := range c.Areas {
		byArea[a.Name] = append(byArea[a.Name], a.Words...)
	}
	for _, s := range c.Services {
		byArea[c.AreaOf(s.Name)] = append(byArea[c.AreaOf(s.Name)], s.Words...)
	}
	for area, words := range byArea {
		aw := areaWords{area: area}
		for _, w := range words {
			if w = stem(strings.ToLower(strings.TrimSpace(w))); w != "" && !slices.Contains(aw.words, w) {
				aw.words = append(aw.words, w)
			}
		}
		slices.SortFunc(aw.words, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
		if len(aw.words) > 0 {
			c.words = append(c.words, aw)
		}
	}
	slices.SortFunc(c.words, func(a, b areaWords) int { return strings.Compare(a.area, b.area) })
}

// stem takes off an English ending that inflection changes, so that "merge" finds "merging" and "merged". Short words
// are left alone, or they would match half the language.
func stem(w string) string {
	if len(w) < 5 || !isASCII(w) {
		return w
	}
	return strings.TrimSuffix(strings.TrimSuffix(w, "s"), "e")
}

// Classify says which area a customer's text is about: the one whose words it uses most, longer words counting more,
// each word once. "" where no word is found. A word matches where a word of the text begins with it, so that "merge" finds
// "merging"; in scripts that do not space words it matches anywhere.
func (c *Catalogue) Classify(text string) string {
	text = strings.ToLower(text)
	best, bestScore := "", 0
	for _, aw := range c.words {
		score := 0
		for _, w := range aw.words {
			if containsWord(text, w) {
				score += len([]rune(w))
			}
		}
		if score > bestScore {
			best, bestScore = aw.area, score
		}
	}
	return best
}

func containsWord(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		i += from
		before := lastRune(text[:i])
		if !unicode.IsLetter(before) && !unicode.IsDigit(before) || unicode.Is(unicode.Han, before) || !isASCII(word) {
			return true
		}
		from = i + len(word)
	}
}

func lastRune(s string) (r rune) {
	for _, r = range s[max(0, len(s)-4):] {
	}
	return r
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
