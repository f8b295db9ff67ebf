package mask

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// What masking means, said by expressions that search: too slow for use, and simple enough to be believed.

type slowReplacement struct {
	re    *regexp.Regexp
	by    string
	hints []string
}

// secrets are replaced as they are, in this order: a password in a URL looks like the beginning of an address.
var slowSecrets = []slowReplacement{
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
var slowAssigned = regexp.MustCompile(`(?i)((?:\b[a-z_-]*(?:password|passwd|pwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|token)|密码|口令|密钥|パスワード|비밀번호)["']?\s*(?:[:=：]|\bis\b|是|は|为)\s*)(["'“「]?)([^\s"',;&，。；”」]{4,})`)

var (
	// The first is for text without spaces between words, where letters of other scripts are not part of the address.
	slowLatin   = regexp.MustCompile(`[\p{Latin}\p{M}\p{Nd}._%+'-]+[@＠][\p{Latin}\p{M}\p{Nd}-]+(?:\.[\p{Latin}\p{M}\p{Nd}-]+)+`)
	slowAny     = regexp.MustCompile(`[\p{L}\p{M}\p{Nd}._%+'-]+[@＠][\p{L}\p{M}\p{Nd}-]+(?:[.。．][\p{L}\p{M}\p{Nd}-]+)+`)
	slowEncoded = regexp.MustCompile(`[A-Za-z0-9._+-]+%40[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+`)
)

// String masks a text.
func slowString(m *Masker, s string) string {
	if s == "" {
		return s
	}
	lower := strings.ToLower(s)
	for _, r := range slowSecrets {
		if containsAny(lower, r.hints) {
			s = r.re.ReplaceAllString(s, r.by)
		}
	}
	if containsAny(lower, assignedHints) {
		s = slowAssigned.ReplaceAllStringFunc(s, slowMaskAssigned)
	}
	if strings.ContainsAny(s, "@＠") {
		s = slowLatin.ReplaceAllString(s, "[email]")
		s = slowAny.ReplaceAllString(s, "[email]")
	}
	if strings.Contains(s, "%40") {
		s = slowEncoded.ReplaceAllString(s, "[email]")
	}
	if strings.ContainsAny(s, "0123456789０１２３４５６７８９") {
		s = slowNumbers(s)
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

func slowMaskAssigned(match string) string {
	p := slowAssigned.FindStringSubmatch(match)
	if p[3][0] == '[' || p[2] == "" && !strings.ContainsAny(p[3], "0123456789０１２３４５６７８９") {
		return match
	}
	return match[:len(match)-len(p[3])] + "[password]"
}

// slowNumbers masks numbers of accounts, cards and telephones. The last two are looked for in stretches that hold seven
// digits or more and nothing but what people write between digits; most of a text is none.
func slowNumbers(s string) string {
	s = maskIBANs(s)
	var out strings.Builder
	last, start, digits := 0, 0, 0
	flush := func(end int) {
		if digits >= 7 {
			out.WriteString(s[last:start])
			out.WriteString(slowStretch(s, start, end))
			last = end
		}
		digits = 0
	}
	for i, r := range s {
		switch {
		case digitValue(r) >= 0:
			digits++
		case !strings.ContainsRune("+＋ \u00a0()./／-", r):
			flush(i)
			start = i + utf8.RuneLen(r)
			if r == utf8.RuneError {
				start = i + 1 // whatever was there, the next rune says where it begins
			}
			continue
		}
	}
	flush(len(s))
	return out.String() + s[last:]
}

// slowStretch masks s[start:end]. Numbers with a plus go before cards, because one in ten of them passes the check of
// cards.
func slowStretch(s string, start, end int) string {
	before, after := lastRune(s[:start]), firstRune(s[end:])
	t := maskPhones(s[start:end], international, before, after)
	t = maskCards(t)
	for _, re := range national {
		t = maskPhones(t, re.re, before, after)
	}
	return t
}

// FuzzFast holds what is used to what it means.
func FuzzFast(f *testing.F) {
	for _, p := range payloads() {
		f.Add(string(p[:4<<10]))
	}
	f.Add("postgres://app:s3cr@t@db:1/x Proxy-Authorization: Basic dXNlcjpwYXNz\r\nset-cookie: a=b; my-password is hunter22, 密码：abc12345 taro＠example.jp u?mail=jane%40example.com DE89 3704 0044 0532 0130 00 (030) 123 45678")
	var m Masker
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := m.String(s), slowString(&m, s); got != want {
			t.Errorf("%q becomes\n%q instead of\n%q", s, got, want)
		}
	})
}

// Texts made of pieces that matter, in every order.
func TestFastIsSlow(t *testing.T) {
	pieces := []string{" ", "", "\n", "\"", "'", ":", "=", ": ", " is ", "/", "@", "://", "-", "_", "+", ".", ",", "[", "]", "\x00", "\xff", "é", "无", "：", "是", "＠", "４", "＋",
		"a", "x9", "user", "https", "db.example.com", "example", "com", "42", "0", "00", "49", "170", "1234567", "4111 1111 1111 1111", "4111111111111111", "555-867-5309", "(415)", "13812345678",
		"DE89", "3704 0044 0532 0130 00", "Authorization", "proxy-", "Bearer", "bearer ", "abcdefgh12345678", "set-", "Cookie", "password", "my_password", "1password", "passwd", "secret_token", "api-key", "PRIVATE KEY",
		"-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "eyJhbGciOi", ".eyJzdWIiOi", "ghp_abcdefghijklmnop", "sk-abcdefghijklmnopqrstu", "sk_live_abcdefgh", "xoxb-12345678", "AKIAIOSFODNN7EXAMPLE", "%40", "密码", "パスワード", "is"}
	r := rand.New(rand.NewPCG(9, 10))
	var m Masker
	for range 60_000 {
		var b strings.Builder
		for range 1 + r.IntN(9) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		if s := b.String(); m.String(s) != slowString(&m, s) {
			t.Fatalf("%q becomes\n%q instead of\n%q", s, m.String(s), slowString(&m, s))
		}
	}
}
