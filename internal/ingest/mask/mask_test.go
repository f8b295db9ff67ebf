package mask

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestMasks(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"address":                {"write to jane.doe+x@example.co.uk, please", "write to [email], please"},
		"umlauts":                {"jörg.müller@büro.example", "[email]"},
		"address in Chinese":     {"请联系zhang.wei@example.com谢谢，无法登录", "请联系[email]谢谢，无法登录"},
		"address of its script":  {"почта иван@пример.рф не работает", "почта [email] не работает"},
		"wide at sign":           {"連絡先 taro＠example.jp まで", "連絡先 [email] まで"},
		"address in a query":     {"GET /u?mail=jane%40example.com", "GET /u?mail=[email]"},
		"card":                   {"card 4111 1111 1111 1111 was charged twice", "card [card] was charged twice"},
		"card without spaces":    {"4111111111111111", "[card]"},
		"card after a count":     {"item 12 4111-1111-1111-1111", "item 12 [card]"},
		"wide card":              {"卡号４１１１１１１１１１１１１１１１扣款两次", "卡号[card]扣款两次"},
		"no card":                {"order 4111 1111 1111 1112", "order 4111 1111 1111 1112"},
		"iban":                   {"from DE89 3704 0044 0532 0130 00 to us", "from [iban] to us"},
		"iban at once":           {"GB82WEST12345698765432.", "[iban]."},
		"no iban":                {"DE89 3704 1144 1532 1130 14", "DE89 3704 1144 1532 1130 14"},
		"phone":                  {"call +49 (170) 123-4567 now", "call [phone] now"},
		"phone of a country":     {"Tel. 030 / 1234567 oder 0171-2345678", "Tel. 030 / 1234567 oder [phone]"},
		"American phone":         {"555-867-5309 or (415) 555-0100", "[phone] or [phone]"},
		"Chinese phone":          {"我的手机13812345678收不到验证码", "我的手机[phone]收不到验证码"},
		"wide phone":             {"电话＋８６１３８１２３４５６７８。", "电话[phone]。"},
		"GitHub token":           {"git push with ghp_abcdefghijklmnopqrstuvwxyz0123456789 fails", "git push with [token] fails"},
		"Slack token":            {"xoxb-1234567890-abcdefgh", "[token]"},
		"AWS key":                {"key AKIAIOSFODNN7EXAMPLE!", "key [token]!"},
		"JWT":                    {"cookie=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP", "cookie=[token]"},
		"header":                 {`curl -H "Authorization: Basic dXNlcjpwYXNz" host`, `curl -H "Authorization: [token]" host`},
		"header in JSON":         {`{"authorization":"Bearer abc.def.ghi"}`, `{"authorization":"[token]"}`},
		"bearer":                 {"sent bearer abcdef123456 twice", "sent bearer [token] twice"},
		"password in a URL":      {"postgres://app:s3cr@t@db.internal:5432/x", "postgres://app:[password]@db.internal:5432/x"},
		"password":               {"my password is hunter22, help", "my password is [password], help"},
		"password in quotes":     {`"client_secret": "abcdefgh"`, `"client_secret": "[password]"`},
		"password in Chinese":    {"密码：abc12345，登录失败", "密码：[password]，登录失败"},
		"private key":            {"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- end", "[token] end"},
		"words about a password": {"password: please reset it", "password: please reset it"},
		"date, version, host":    {"since 2026-09-13 08:43:12 on 10.0.12.34:8443, v1.22.333, build 20260913", "since 2026-09-13 08:43:12 on 10.0.12.34:8443, v1.22.333, build 20260913"},
		"a count":                {"1234567 failures in 600 s", "1234567 failures in 600 s"},
		"an id":                  {"trace 5b8efff798038103d269b633813fc60c", "trace 5b8efff798038103d269b633813fc60c"},
		"a time":                 {`{"time":1757752980000}`, `{"time":1757752980000}`},
		"plain Chinese":          {"无法合并拉取请求，页面一直转圈", "无法合并拉取请求，页面一直转圈"},
	}
	var m Masker
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := m.String(tt.in)
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if again := m.String(got); again != got {
				t.Errorf("masked again it becomes %s", again)
			}
		})
	}
}

func TestFurtherPatterns(t *testing.T) {
	m, err := New(Pattern{Name: "employee", Regexp: `\bEMP-\d+`})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.String("EMP-123 cannot log in"); got != "[employee] cannot log in" {
		t.Error(got)
	}
	if _, err := New(Pattern{Name: "x", Regexp: "("}); err == nil {
		t.Error("a broken pattern is accepted")
	}
}

func TestPayloadIsCut(t *testing.T) {
	var m Masker
	const limit = 64 << 10
	long := bytes.Repeat([]byte("无法登录 "), 20_000)
	got := m.Payload(long, limit)
	if len(got) > limit || len(got) < limit-16 || !utf8.Valid(got) {
		t.Errorf("%d bytes, valid %v", len(got), utf8.Valid(got))
	}
	// A secret across the place of the cut must not show half of itself.
	for shift := range 20 {
		text := strings.Repeat("x ", (limit+margin)/2-30) + strings.Repeat("y", 3*shift) + " ghp_abcdefghijklmnopqrstuvwxyz0123456789 " + strings.Repeat("z ", 4000)
		if got := m.Payload([]byte(text), limit); bytes.Contains(got, []byte("ghp_")) {
			t.Fatalf("shift %d shows a part of the token", shift)
		}
	}
	if got := m.Payload(bytes.Repeat([]byte("a"), 1<<20), limit); len(got) > limit {
		t.Errorf("%d bytes without any break", len(got))
	}
}

func BenchmarkPayload(b *testing.B) {
	var m Masker
	text := []byte(strings.Repeat(`{"time":1757752980000,"service":"checkout","operation":"/cart/{id}","outcome":"failure"}`+"\n", 12))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.Payload(text, 64<<10)
	}
}

func FuzzMask(f *testing.F) {
	f.Add("jane@example.com 4111 1111 1111 1111 +49 170 1234567")
	f.Add("密码：abc12345")
	f.Add("\xff\xfe://a:b@c")
	f.Add("postgres://app:s3cr@t@db.internal:5432/x Authorization: Basic dXNlcjpwYXNz")
	f.Add("-----BEGIN PRIVATE KEY-----\nabc ghp_abcdefghijklmnopqrstuvwxyz0123456789 EMP-7")
	m, err := New(Pattern{Name: "employee", Regexp: `\bEMP-\d+`})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 64<<10 {
			return
		}
		hang := time.AfterFunc(time.Minute, func() { panic("it hangs") })
		defer hang.Stop()
		got := m.String(s)
		if len(got) > 12*len(s) { // a word such as [password] for each secret, none of which has fewer letters than four
			t.Errorf("%d bytes of %d", len(got), len(s))
		}
		twice := m.String(got)
		for _, word := range []string{"[email]", "[phone]", "[card]", "[iban]", "[token]", "[password]", "[employee]"} {
			if strings.Count(twice, word) < strings.Count(got, word) {
				t.Errorf("masked %q, and masked again %q", got, twice)
			}
		}
		if again := m.String(s); again != got {
			t.Errorf("masked %q, and another time %q", got, again)
		}
		if len(m.Payload([]byte(s), 100)) > 100 {
			t.Error("too long")
		}
	})
}
