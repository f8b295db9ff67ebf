package mask

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pattern is one more kind of secret: what it matches is replaced by [Name].
type Pattern struct{ Name, Regexp string }

// Masker masks with the built-in and further patterns. It is safe for concurrent use; the zero value has the
// built-in ones only.
type Masker struct{ extra []replacement }

type replacement struct {
	re *regexp.Regexp
	by string
}

// New compiles further patterns.
func New(patterns ...Pattern) (*Masker, error) {
	m := &Masker{}
	for _, p := range patterns {
		re, err := regexp.Compile(p.Regexp)
		if err != nil {
			return nil, fmt.Errorf("compile mask %q: %w", p.Name, err)
		}
		m.extra = append(m.extra, replacement{re: re, by: "[" + strings.NewReplacer("$", "", "[", "", "]", "").Replace(p.Name) + "]"})
	}
	return m, nil
}

// digit and its kind know the wide forms of East Asian keyboards.
const digit = `[0-9\x{ff10}-\x{ff19}]`

// secrets are replaced in this order: a password in a URL looks like the beginning of an address.
var secrets = []finder{
	{words: []string{"-----BEGIN "}, exact: true, inside: true,
		match: at(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`, "[token]")},
	{words: []string{"://"}, inside: true, scheme: true, match: urlPassword},
	{words: []string{"authorization"}, before: "proxy-",
		match: at(`(?i)((?:proxy-)?authorization["']?\s*[:=]\s*["']?)(?:(?:bearer|basic|digest|token|negotiate|apikey)\s+)?[^\s"',;\[][^\s"',;]*`, "${1}[token]")},
	{words: []string{"cookie"}, before: "set-", match: at(`(?i)((?:set-)?cookie["']?\s*:\s*["']?)[^\r\n"'\[][^\r\n"']*`, "${1}[token]")},
	{words: []string{"bearer"}, match: at(`(?i)(bearer\s+)[A-Za-z0-9._~+/=-]{8,}`, "${1}[token]")},
	{words: []string{"eyJ"}, exact: true, match: at(`eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?`, "[token]")},
	{words: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "xapp-", "AKIA", "ASIA", "AIza", "sk_", "pk_", "rk_", "sk-", "npm_", "hf_", "SG."}, exact: true,
		match: at(`(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|xox[a-z]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{8,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})`, "[token]")},
}

// at asks an expression whether it matches at the beginning.
func at(expression, by string) func(s string) (int, string) {
	re := regexp.MustCompile(`\A` + expression)
	return func(s string) (int, string) {
		m := re.FindStringSubmatchIndex(s)
		if m == nil {
			return 0, ""
		}
		return m[1], string(re.ExpandString(nil, by, s, m))
	}
}

// urlPassword finds what stands between a user and the last @ behind "://".
func urlPassword(s string) (int, string) {
	colon := 3
	for colon < len(s) && !strings.ContainsRune(" \t\n\f\r/:@\"'<>", rune(s[colon])) {
		colon++
	}
	if colon == len(s) || s[colon] != ':' {
		return 0, ""
	}
	end := colon + 1
	for end < len(s) && !strings.ContainsRune(" \t\n\f\r/\"'<>[", rune(s[end])) {
		end++
	}
	i := strings.LastIndexByte(s[:end], '@')
	if i < colon+2 {
		return 0, ""
	}
	return i + 1, s[:colon] + ":[password]@"
}

// An assignment is a named secret with its value. A value without a digit is taken for a word of the sentence unless it
// stands in quotes: "password: please reset it" keeps its words.
var (
	latinNames = []string{"password", "passwd", "pwd", "passphrase", "secret", "apikey", "api_key", "api-key", "accesskey", "access_key", "access-key", "privatekey", "private_key", "private-key", "token"}
	otherNames = []string{"密码", "口令", "密钥", "パスワード", "비밀번호"}
	assignment = regexp.MustCompile(`(?i)\A["']?\s*(?:[:=：]|is\b|是|は|为)\s*(["'“「]?)([^\s"',;&，。；”」]{4,})`)
)

// maskAssigned replaces the values of assignments.
func maskAssigned(s, lower string) string {
	var ends []int
	for _, n := range latinNames {
		for _, i := range find(lower, []string{n}) {
			if begins(s, i) {
				ends = append(ends, i+len(n))
			}
		}
	}
	for _, n := range otherNames {
		for _, i := range find(s, []string{n}) {
			ends = append(ends, i+len(n))
		}
	}
	slices.Sort(ends)
	var out strings.Builder
	last := 0
	for _, end := range slices.Compact(ends) {
		if end <= last && last > 0 || end == len(s) || lower[end] == 'i' && wordByte(s[end-1]) {
			continue // within a value, or no word: "passwordis"
		}
		m := assignment.FindStringSubmatchIndex(s[end:])
		if m == nil {
			continue
		}
		from, to := end+m[4], end+m[5]
		by := "[password]"
		if s[from] == '[' || m[2] == m[3] && !strings.ContainsAny(s[from:to], "0123456789０１２３４５６７８９") {
			by = s[from:to]
		}
		out.WriteString(s[last:from])
		out.WriteString(by)
		last = to
	}
	if last == 0 {
		return s
	}
	out.WriteString(s[last:])
	return out.String()
}

// begins tells whether a name that ends with the word at i begins at the edge of a word: my_password, but not 1password.
func begins(s string, i int) bool {
	for {
		if i == 0 || wordByte(s[i-1]) != wordByte(s[i]) {
			return true
		}
		if c := s[i-1]; !letter(c) && c != '_' && c != '-' {
			return false
		}
		i--
	}
}

var (
	// The first is for text without spaces between words, where letters of other scripts are not part of the address.
	latinEmail = email{newRuneClass("._%+'-", unicode.Latin, unicode.M, unicode.Nd), regexp.MustCompile(`\A[\p{Latin}\p{M}\p{Nd}._%+'-]+[@＠][\p{Latin}\p{M}\p{Nd}-]+(?:\.[\p{Latin}\p{M}\p{Nd}-]+)+`)}
	anyEmail   = email{newRuneClass("._%+'-", unicode.L, unicode.M, unicode.Nd), regexp.MustCompile(`\A[\p{L}\p{M}\p{Nd}._%+'-]+[@＠][\p{L}\p{M}\p{Nd}-]+(?:[.。．][\p{L}\p{M}\p{Nd}-]+)+`)}
	encoded    = email{newRuneClass("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-"), regexp.MustCompile(`\A[A-Za-z0-9._+-]+%40[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+`)}
)

// email is a form of addresses: what may stand before the sign, and the whole.
type email struct {
	local *runeClass
	re    *regexp.Regexp
}

func (e *email) replace(s string, signs ...string) string {
	var out strings.Builder
	last := 0
	for _, i := range find(s, signs) {
		from := e.local.runBefore(s, last, i)
		if from >= i {
			continue
		}
		if n := len(e.re.FindString(s[from:])); n > 0 {
			out.WriteString(s[last:from])
			out.WriteString("[email]")
			last = from + n
		}
	}
	if last == 0 {
		return s
	}
	out.WriteString(s[last:])
	return out.String()
}

// String masks a text.
func (m *Masker) String(s string) string {
	if s == "" {
		return s
	}
	lower := lowered(s)
	for i := range secrets {
		if masked := secrets[i].replace(s, lower); masked != s {
			s, lower = masked, lowered(masked)
		}
	}
	s = maskAssigned(s, lower)
	s = latinEmail.replace(s, "@", "＠")
	s = anyEmail.replace(s, "@", "＠")
	s = encoded.replace(s, "%40")
	s = maskNumbers(s)
	for _, r := range m.extra {
		s = r.re.ReplaceAllString(s, r.by)
	}
	return s
}

// margin is looked at beyond the end of a cut payload.
const margin = 4 << 10

// Payload masks and cuts a payload to at most limit bytes. It copies: b may be reused afterwards.
func (m *Masker) Payload(b []byte, limit int) []byte {
	if len(b) > limit+margin {
		b = b[:limit+margin]
		// A secret that is cut in two may no longer look like one: what follows the last break goes.
		if i := bytes.LastIndexAny(b, " \t\r\n\"',;&{}[]<>"); i > limit {
			b = b[:i]
		} else {
			b = b[:max(limit-margin, 0)]
		}
	}
	return []byte(Cut(m.String(string(b)), limit))
}

// Cut shortens to at most limit bytes without cutting a rune in two.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
