package pipeline

import (
	"cmp"
	"strings"
)

// maxIDName bounds the names that are looked at: what is longer has been cut already.
const maxIDName = 4 << 10

// CollapseIDs puts a placeholder where a name has an id, so that /users/17 and /users/18 are one operation: numbers, UUIDs,
// hashes, ULIDs and other random words, dates and mail addresses. What stands behind a question mark is left out. Names
// without ids come back as they are.
func CollapseIDs(name string) string {
	if len(name) > maxIDName || !strings.ContainsAny(name, "0123456789@%?#") {
		return name
	}
	if i := strings.IndexAny(name, "?#"); i > 0 && strings.Contains(name[:i], "/") {
		name = name[:i]
	}
	return replaceRuns(name, func(c byte) bool { return c != '/' && c != ' ' }, collapsePart)
}

// replaceRuns puts something else for each longest run of the bytes that are in; what nothing is put for is let be.
func replaceRuns(s string, in func(byte) bool, with func(string) string) string {
	var b strings.Builder // of what is changed, empty while nothing is
	done := 0
	for from := 0; from < len(s); from++ {
		to := from
		for to < len(s) && in(s[to]) {
			to++
		}
		if to > from {
			if r := with(s[from:to]); r != s[from:to] {
				b.WriteString(s[done:from])
				b.WriteString(r)
				done = to
			}
		}
		from = to
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// collapsePart is what stands for one part of a path. Parts that are templates already are let be.
func collapsePart(s string) string {
	if strings.IndexByte(s, '{') >= 0 || s[0] == ':' || s[0] == '<' {
		return s
	}
	if isMail(s) {
		return "{email}"
	}
	if p := placeholder(s, true); p != "" {
		return p
	}
	if len(s) > 36 { // a UUID behind or before something
		for i := 0; i+36 <= len(s); i++ {
			if isUUID(s[i:i+36]) && (i == 0 || !isWord(s[i-1])) && (i+36 == len(s) || !isWord(s[i+36])) {
				return collapseWords(s[:i]) + "{uuid}" + collapseWords(s[i+36:])
			}
		}
	}
	return collapseWords(s)
}

// collapseWords looks at the words of a part, such as order-182736 or main.8f3a2b1c.js.
func collapseWords(s string) string {
	return replaceRuns(s, isWord, func(word string) string { return cmp.Or(placeholder(word, false), word) })
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// placeholder is what stands for a word, "" for one that is no id. Of a part that is whole any number is an id; within one
// only a long number is: us-east-1 and python-3 are names.
func placeholder(s string, whole bool) string {
	digits, letters, hex, base32, upper, lower := 0, 0, true, true, false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
			continue
		case c >= 'a' && c <= 'z':
			lower = true
		case c >= 'A' && c <= 'Z':
			upper = true
		case whole && c == '-' && i > 0: // a UUID, a date, a number below zero
			if isUUID(s) {
				return "{uuid}"
			}
			if isDate(s) {
				return "{date}"
			}
			return longToken(s)
		case whole && (c == '_' || c == '=' || c == '.' || c == '%' || c == '~'):
			return longToken(s)
		default:
			return ""
		}
		letters++
		c := s[i] | 0x20
		hex = hex && c <= 'f'
		base32 = base32 && c != 'i' && c != 'l' && c != 'o' && c != 'u'
	}
	switch {
	case digits == 0:
		return ""
	case letters == 0:
		if whole || digits >= 4 {
			return "{number}"
		}
		return ""
	case len(s) == 26 && base32 && s[0] <= '7' && digits >= 2 && upper != lower:
		return "{ulid}"
	case hex && upper != lower && len(s) >= 7 && digits >= 2:
		return "{hash}"
	case len(s) >= 16 && digits >= 4 && letters >= 4:
		return "{token}"
	}
	return ""
}

// longToken takes a part of one random word with marks between, as base64 for addresses has them. Words that can be
// read have fewer digits, or marks that part them.
func longToken(s string) string {
	digits, letters, run, longest := 0, 0, 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
			run++
		case isWord(c):
			letters++
			run++
		case c == '-' || c == '_' || c == '=':
			run = 0
		default:
			return ""
		}
		longest = max(longest, run)
	}
	if len(s) >= 20 && digits >= 4 && letters >= 4 && longest >= 16 {
		return "{token}"
	}
	return ""
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !(s[i] >= '0' && s[i] <= '9' || c >= 'a' && c <= 'f') {
				return false
			}
		}
	}
	return true
}

// isDate tells 2026-09-13 and what begins so and goes on with a time.
func isDate(s string) bool {
	if len(s) < 10 || len(s) > 10 && s[10] != 'T' {
		return false
	}
	for i := range 10 {
		if dash := i == 4 || i == 7; dash != (s[i] == '-') || !dash && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return true
}

// isMail tells what looks like a mail address, its sign written as it is or in the way of addresses.
func isMail(s string) bool {
	at := strings.IndexByte(s, '@')
	rest := at + 1
	if at < 0 {
		if at = strings.Index(strings.ToLower(s), "%40"); at < 0 {
			return false
		}
		rest = at + 3
	}
	dot := strings.LastIndexByte(s, '.')
	return at > 0 && dot > rest && dot < len(s)-1
}
