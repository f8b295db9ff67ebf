package mask

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
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
	// hints are texts of which one is in whatever re matches, in lower case; none means that it is always tried. They
	// make masking ten times cheaper: most payloads hold none of them.
	hints []string
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

// secrets are replaced as they are, in this order: a password in a URL looks like the beginning of an address.
var secrets = []replacement{
	{regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`), "[token]", []string{"private key"}},
	{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>]*):[^\s/"'<>\[]+@`), "${1}:[password]@", []string{"://"}},
	{regexp.MustCompile(`(?i)\b((?:proxy-)?authorization["']?\s*[:=]\s*["']?)(?:(?:bearer|basic|digest|token|negotiate|apikey)\s+)?[^\s"',;\[][^\s"',;]*`), "${1}[token]", []string{"authorization"}},
	{regexp.MustCompile(`(?i)\b((?:set-)?cookie["']?\s*:\s*["']?)[^\r\n"'\[][^\r\n"']*`), "${1}[token]", []string{"cookie"}},
	{regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}`), "${1}[token]", []string{"bearer"}},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?`), "[token]", []string{"eyj"}},
	{regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|xox[a-z]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{8,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})`), "[token]", []string{"gh", "glpat-", "xox", "xapp-", "akia", "asia", "aiza", "_live_", "_test_", "sk-", "npm_", "hf_", "sg."}},
}

// assigned is a named secret with its value. A value without a digit is taken for a word of the sentence unless it
// stands in quotes: "password: please reset it" keeps its words.
var assigned = regexp.MustCompile(`(?i)((?:\b[a-z_-]*(?:password|passwd|pwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|token)|密码|口令|密钥|パスワード|비밀번호)["']?\s*(?:[:=：]|\bis\b|是|は|为)\s*)(["'“「]?)([^\s"',;&，。；”」]{4,})`)

var (
	// The first is for text without spaces between words, where letters of other scripts are not part of the address.
	latinEmail = regexp.MustCompile(`[\p{Latin}\p{M}\p{Nd}._%+'-]+[@＠][\p{Latin}\p{M}\p{Nd}-]+(?:\.[\p{Latin}\p{M}\p{Nd}-]+)+`)
	anyEmail   = regexp.MustCompile(`[\p{L}\p{M}\p{Nd}._%+'-]+[@＠][\p{L}\p{M}\p{Nd}-]+(?:[.。．][\p{L}\p{M}\p{Nd}-]+)+`)
	encoded    = regexp.MustCompile(`[A-Za-z0-9._+-]+%40[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+`)
)

// String masks a text.
func (m *Masker) String(s string) string {
	if s == "" {
		return s
	}
	lower := strings.ToLower(s)
	for _, r := range secrets {
		if containsAny(lower, r.hints) {
			s = r.re.ReplaceAllString(s, r.by)
		}
	}
	if containsAny(lower, assignedHints) {
		s = assigned.ReplaceAllStringFunc(s, maskAssigned)
	}
	if strings.ContainsAny(s, "@＠") {
		s = latinEmail.ReplaceAllString(s, "[email]")
		s = anyEmail.ReplaceAllString(s, "[email]")
	}
	if strings.Contains(s, "%40") {
		s = encoded.ReplaceAllString(s, "[email]")
	}
	if strings.ContainsAny(s, "0123456789０１２３４５６７８９") {
		s = maskNumbers(s)
	}
	for _, r := range m.extra {
		s = r.re.ReplaceAllString(s, r.by)
	}
	return s
}

var assignedHints = []string{"pass", "pwd", "secret", "key", "token", "密码", "口令", "密钥", "パスワード", "비밀번호"}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

func maskAssigned(match string) string {
	p := assigned.FindStringSubmatch(match)
	if p[3][0] == '[' || p[2] == "" && !strings.ContainsAny(p[3], "0123456789０１２３４５６７８９") {
		return match
	}
	return p[1] + p[2] + "[password]"
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
			b = b[:limit-margin]
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
