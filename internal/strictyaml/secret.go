package strictyaml

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

const (
	hidden          = "<secret>"
	maxSecretLength = 64 << 10
)

// Secret is a text that no log, page, error or dump may show. Keep it in exported fields and out of the keys of maps:
// fmt cannot call methods on unexported fields, nor encoding/json on keys, and they would print the text.
type Secret string

var (
	_ fmt.Formatter  = Secret("")
	_ slog.LogValuer = Secret("")
)

// Reveal is the text itself; the one place where it is used should call this, nobody else.
func (s Secret) Reveal() string { return string(s) }

// String hides the text but shows whether there is one.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format hides the text under every verb, wrong ones included: %d would otherwise print it in its complaint.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText hides the text from JSON, YAML and anything else that encodes.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML hides the text.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// LogValue hides the text.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// ResolveSecret is the companion of a key and its *_file form: the inline secret, or the file's content without one
// trailing line break. Both empty gives an empty secret; both set is refused, because nobody could say which one
// holds. Errors name the file, never its content.
func ResolveSecret(inline Secret, file string) (Secret, error) {
	if file == "" {
		return inline, nil
	}
	if inline != "" {
		return "", fmt.Errorf("read secret file %s: the secret is also given inline", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("read secret file: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecretLength+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("read secret file %s: %w", file, err)
	}
	if len(data) > maxSecretLength {
		return "", fmt.Errorf("read secret file %s: it is longer than %d bytes", file, maxSecretLength)
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if text == "" {
		return "", fmt.Errorf("read secret file %s: it is empty", file)
	}
	return Secret(text), nil
}
