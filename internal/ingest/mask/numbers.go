package mask

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var iban = regexp.MustCompile(`(?i)\A[a-z]{2}[0-9]{2}(?:[ -]?[a-z0-9]{4}){2,7}(?:[ -]?[a-z0-9]{1,3})?\b`)

// maskIBANs looks where a word begins with two letters and two digits; the expression alone would look everywhere.
func maskIBANs(s string) string {
	var out strings.Builder
	last := 0
	for i := 0; i+15 <= len(s); i++ {
		if !letter(s[i]) || !letter(s[i+1]) || !decimal(s[i+2]) || !decimal(s[i+3]) || i > 0 && (letter(s[i-1]) || decimal(s[i-1]) || s[i-1] == '_') {
			continue
		}
		if n := ibanAt(iban.FindString(s[i:])); n > 0 {
			out.WriteString(s[last:i])
			out.WriteString("[iban]")
			last = i + n
			i = last - 1
		}
	}
	if last == 0 {
		return s
	}
	return out.String() + s[last:]
}

func letter(c byte) bool  { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func decimal(c byte) bool { return c >= '0' && c <= '9' }

// ibanAt checks a match by its check digits and gives the length of the number: words that follow it are no part of it.
func ibanAt(match string) int {
	for end := len(match); end >= 15; end-- {
		if (end == len(match) || match[end] == ' ' || match[end] == '-') && validIBAN(match[:end]) {
			return end
		}
	}
	return 0
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

// maskNumbers masks numbers of accounts, cards and telephones. The last two are looked for in stretches that hold seven
// digits or more and nothing but what people write between digits; most of a text is none.
func maskNumbers(s string) string {
	s = maskIBANs(s)
	var out strings.Builder
	last, start := 0, 0
	var in stretch
	flush := func(end int) {
		if in.digits >= 7 {
			if masked := maskStretch(s, start, end, &in); len(masked) != end-start || masked != s[start:end] {
				out.WriteString(s[last:start])
				out.WriteString(masked)
				last = end
			}
		}
		in = stretch{}
	}
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch kindOfByte[c] {
			case isDigit:
				in.digits++
				if c == '0' && i > start && s[i-1] == '0' {
					in.zeros = true
				}
				in.zero = in.zero || c == '0'
			case isBetween:
				in.between++
				in.plus, in.bracket = in.plus || c == '+', in.bracket || c == '('
			default:
				if in.digits > 0 || in.between > 0 {
					flush(i)
				}
				start = i + 1
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case digitValue(r) >= 0:
			in.digits++
			in.wide = true
		case r == '＋', r == '\u00a0', r == '／':
			in.between++
			in.plus, in.wide = in.plus || r == '＋', true
		default:
			flush(i)
			start = i + size
		}
		i += size
	}
	flush(len(s))
	if last == 0 {
		return s
	}
	out.WriteString(s[last:])
	return out.String()
}

// stretch is what a stretch of digits has in it: without some of it, no number of some form is in it.
type stretch struct {
	digits, between int
	plus, bracket   bool
	zero, zeros     bool // a zero, two in a row
	wide            bool // signs that are not ASCII: then all forms are tried
}

const (
	isOther = iota
	isDigit
	isBetween
)

var kindOfByte = func() (kinds [utf8.RuneSelf]uint8) {
	for c := '0'; c <= '9'; c++ {
		kinds[c] = isDigit
	}
	for _, c := range "+ ()./-" {
		kinds[c] = isBetween
	}
	return kinds
}()

// maskStretch masks s[start:end]. Numbers with a plus go before cards, because one in ten of them passes the check of
// cards.
func maskStretch(s string, start, end int, in *stretch) string {
	before, after := lastRune(s[:start]), firstRune(s[end:])
	t := s[start:end]
	if in.plus {
		t = maskPhones(t, international, before, after)
	}
	if in.digits >= 13 {
		t = maskCards(t)
	}
	for i := range national {
		if n := &national[i]; in.digits >= n.digits && (in.wide || (!n.bracket || in.bracket) && (!n.zero || in.zero) && (!n.zeros || in.zeros) && in.between >= n.between) {
			t = maskPhones(t, n.re, before, after)
		}
	}
	return t
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
var national = []struct {
	re                   *regexp.Regexp
	digits, between      int // at least
	bracket, zero, zeros bool
}{
	{re: regexp.MustCompile(`\(0?` + digit + `{2,5}\)[ -]?` + digit + `{3,5}[ -]?` + digit + `{2,6}`), digits: 7, between: 2, bracket: true},
	{re: regexp.MustCompile(`\b00[1-9]` + digit + `(?:[ -]?` + digit + `){7,13}`), digits: 11, zeros: true},
	{re: regexp.MustCompile(`\b0` + digit + `{1,4}[ /-]` + digit + `{3,}(?:[ -]?` + digit + `{2,}){0,4}`), digits: 7, between: 1, zero: true},
	{re: regexp.MustCompile(`\b[2-9]` + digit + `{2}[ .-]` + digit + `{3}[ .-]` + digit + `{4}`), digits: 10, between: 2},
	{re: regexp.MustCompile(`[1\x{ff11}][3-9\x{ff13}-\x{ff19}]` + digit + `{9}|1[3-9]` + digit + `[ -]` + digit + `{4}[ -]` + digit + `{4}`), digits: 11},
}

func maskPhones(s string, re *regexp.Regexp, before, after rune) string {
	found := re.FindAllStringIndex(s, -1)
	if found == nil {
		return s
	}
	var out strings.Builder
	last := 0
	for _, at := range found {
		if at[0] > 0 {
			before = lastRune(s[:at[0]])
		}
		if last > 0 && at[0] == last {
			before = ']' // the word that the number before it has become
		}
		next := after
		if at[1] < len(s) {
			next = firstRune(s[at[1]:])
		}
		if inWord(before) || inWord(next) {
			continue
		}
		out.WriteString(s[last:at[0]])
		out.WriteString("[phone]")
		last = at[1]
	}
	return out.String() + s[last:]
}

// inWord tells runes that make a stretch beside them a part of a longer number or identifier.
func inWord(r rune) bool { return digitValue(r) >= 0 || r == '_' || unicode.Is(unicode.Latin, r) }

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
