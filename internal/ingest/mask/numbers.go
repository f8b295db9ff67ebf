package mask

import (
	"regexp"
	"strings"
	"unicode"
)

var iban = regexp.MustCompile(`(?i)\b[a-z]{2}[0-9]{2}(?:[ -]?[a-z0-9]{4}){2,7}(?:[ -]?[a-z0-9]{1,3})?\b`)

// maskIBAN checks the number by its check digits; words that follow it are given back.
func maskIBAN(match string) string {
	for end := len(match); end >= 15; end-- {
		if end < len(match) && match[end] != ' ' && match[end] != '-' {
			continue
		}
		if validIBAN(match[:end]) {
			return "[iban]" + match[end:]
		}
	}
	return match
}

// validIBAN is ISO 7064 mod 97-10: the first four characters moved to the end, letters as 10 to 35.
func validIBAN(s string) bool {
	s = strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(s))
	if len(s) < 15 || len(s) > 34 {
		return false
	}
	rest := 0
	for _, c := range s[4:] + s[:4] {
		if c >= 'A' {
			rest = (rest*100 + int(c-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(c-'0')) % 97
		}
	}
	return rest == 1
}

// maskNumbers masks numbers of accounts, cards and telephones. Those with a plus go before cards, because one in ten of
// them passes the check of cards.
func maskNumbers(s string) string {
	s = iban.ReplaceAllStringFunc(s, maskIBAN)
	s = maskPhones(s, international)
	s = maskCards(s)
	for _, re := range national {
		s = maskPhones(s, re)
	}
	return s
}

// digitRun is a stretch of digits in groups, as people write numbers.
var digitRun = regexp.MustCompile(digit + `(?:[ \x{a0}.-]?` + digit + `){12,}`)

// maskCards replaces what passes the Luhn check and begins and ends with a group of a run: "order 12 4111 1111 …" has a
// card in it although the whole run has not.
func maskCards(s string) string {
	return digitRun.ReplaceAllStringFunc(s, func(run string) string {
		runes := []rune(run)
		var out strings.Builder
		for i := 0; i < len(runes); {
			if n := cardAt(runes, i); n > 0 {
				out.WriteString("[card]")
				i += n
				continue
			}
			out.WriteRune(runes[i])
			i++
		}
		return out.String()
	})
}

// cardAt is the length in runes of the longest card number that begins at i, or 0.
func cardAt(runes []rune, i int) int {
	if digitValue(runes[i]) < 0 || i > 0 && digitValue(runes[i-1]) >= 0 {
		return 0
	}
	var digits []int
	longest := 0
	for j := i; j < len(runes) && len(digits) < 19; j++ {
		d := digitValue(runes[j])
		if d < 0 {
			continue
		}
		digits = append(digits, d)
		ends := j+1 == len(runes) || digitValue(runes[j+1]) < 0
		if ends && len(digits) >= 13 && luhn(digits) {
			longest = j + 1 - i
		}
	}
	return longest
}

func luhn(digits []int) bool {
	sum, zero := 0, true
	for i := range digits {
		d := digits[len(digits)-1-i]
		zero = zero && d == 0
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0 && !zero
}

func digitValue(r rune) int {
	switch {
	case r >= '0' && r <= '9':
		return int(r - '0')
	case r >= '０' && r <= '９':
		return int(r - '０')
	}
	return -1
}

var international = regexp.MustCompile(`[+＋]` + digit + `(?:[ \x{a0}().／/-]{0,2}` + digit + `){6,14}`)

// national are numbers that begin with a zero or brackets, the American and the Chinese form. Dates, versions,
// addresses of hosts and bare counts are none of them.
var national = []*regexp.Regexp{
	regexp.MustCompile(`\(0?` + digit + `{2,5}\)[ -]?` + digit + `{3,5}[ -]?` + digit + `{2,6}`),
	regexp.MustCompile(`\b00[1-9]` + digit + `(?:[ -]?` + digit + `){7,13}`),
	regexp.MustCompile(`\b0` + digit + `{1,4}[ /-]` + digit + `{3,}(?:[ -]?` + digit + `{2,}){0,4}`),
	regexp.MustCompile(`\b[2-9]` + digit + `{2}[ .-]` + digit + `{3}[ .-]` + digit + `{4}`),
	regexp.MustCompile(`[1１][3-9３-９]` + digit + `{9}|1[3-9]` + digit + `[ -]` + digit + `{4}[ -]` + digit + `{4}`),
}

func maskPhones(s string, re *regexp.Regexp) string {
	found := re.FindAllStringIndex(s, -1)
	if found == nil {
		return s
	}
	var out strings.Builder
	last := 0
	for _, at := range found {
		if inNumber(s, at[0], at[1]) {
			continue
		}
		out.WriteString(s[last:at[0]])
		out.WriteString("[phone]")
		last = at[1]
	}
	return out.String() + s[last:]
}

// inNumber tells whether the stretch is a part of a longer number or identifier.
func inNumber(s string, from, to int) bool {
	before, after := lastRune(s[:from]), firstRune(s[to:])
	part := func(r rune) bool { return digitValue(r) >= 0 || r == '_' || unicode.Is(unicode.Latin, r) }
	return part(before) || part(after)
}

func firstRune(s string) rune {
	for _, r := range s {
		return r
	}
	return 0
}

func lastRune(s string) rune {
	r := []rune(s[max(0, len(s)-4):])
	if len(r) == 0 {
		return 0
	}
	return r[len(r)-1]
}
