package door

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Intercom signs with it; as a MAC it holds
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Scheme names a provider's way to sign its webhooks.
type Scheme string

// The schemes.
const (
	GitHub    Scheme = "github"
	PagerDuty Scheme = "pagerduty"
	Zendesk   Scheme = "zendesk"
	Intercom  Scheme = "intercom"
)

// Schemes lists all of them.
var Schemes = []Scheme{GitHub, PagerDuty, Zendesk, Intercom}

// UnmarshalText reads the word used in files.
func (s *Scheme) UnmarshalText(text []byte) (err error) {
	*s, err = strictyaml.Enum("signature", text, Schemes...)
	return err
}

// signedFor is how far a signed time may lie from the clock: a delivery that was overheard is not worth more than that.
const signedFor = 5 * time.Minute

// maxSecretFile bounds a file of tokens or secrets.
const maxSecretFile = 64 << 10

// secrets reads files with one secret a line. An empty file is an error: nobody means to let everybody in, or nobody.
func secrets(files []string) (list [][]byte, err error) {
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read secret: %w", err)
		}
		data, err := io.ReadAll(io.LimitReader(f, maxSecretFile))
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("read secret: %w", err)
		}
		n := len(list)
		for line := range bytes.Lines(data) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				list = append(list, line)
			}
		}
		if len(list) == n {
			return nil, fmt.Errorf("read secret: %s holds none", name)
		}
	}
	return list, nil
}

// knows compares a bearer token with all that are known, in a time that tells nothing of them.
func knows(tokens [][]byte, header string) bool {
	scheme, given, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return false
	}
	got := sha256.Sum256([]byte(strings.TrimSpace(given)))
	found := 0
	for _, t := range tokens {
		want := sha256.Sum256(t)
		found |= subtle.ConstantTimeCompare(got[:], want[:])
	}
	return found == 1
}

// signed tells whether a body bears a signature made with one of the secrets. Every secret is tried against every
// signature: both may be several while they change.
func (s Scheme) signed(keys [][]byte, h http.Header, body []byte, now time.Time) bool {
	newHash, message := sha256.New, body
	var given [][]byte
	switch s {
	case GitHub:
		given = hexAfter("sha256=", h.Get("X-Hub-Signature-256"))
	case PagerDuty:
		for _, part := range strings.Split(h.Get("X-PagerDuty-Signature"), ",") {
			given = append(given, hexAfter("v1=", strings.TrimSpace(part))...)
		}
	case Intercom:
		newHash = sha1.New
		given = hexAfter("sha1=", h.Get("X-Hub-Signature"))
	case Zendesk:
		stamp := h.Get("X-Zendesk-Webhook-Signature-Timestamp")
		at, err := time.Parse(time.RFC3339, stamp)
		if err != nil || now.Sub(at).Abs() > signedFor {
			return false
		}
		mac, err := base64.StdEncoding.DecodeString(h.Get("X-Zendesk-Webhook-Signature"))
		if err != nil {
			return false
		}
		given = [][]byte{mac}
		message = append([]byte(stamp), body...)
	}
	good := false
	for _, key := range keys {
		want := sum(newHash, key, message)
		for _, g := range given {
			good = hmac.Equal(want, g) || good
		}
	}
	return good
}

func hexAfter(prefix, text string) [][]byte {
	digits, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return nil
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil
	}
	return [][]byte{b}
}

func sum(newHash func() hash.Hash, key, message []byte) []byte {
	m := hmac.New(newHash, key)
	m.Write(message)
	return m.Sum(nil)
}
