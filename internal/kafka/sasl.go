package kafka

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"os"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go/sasl"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

const (
	mechanismPlain    = "PLAIN"
	mechanismScram256 = "SCRAM-SHA-256"
	mechanismScram512 = "SCRAM-SHA-512"

	scramNonceBytes = 24
	scramIterMin    = 4096    // RFC 7677.
	scramIterMax    = 1 << 22 // A broker could otherwise keep this process busy for hours.
)

var errCredentials = errors.New("credentials")

// login is the mechanism of a configuration. It reads the password for each connection.
type login struct{ cfg SASLConfig }

var _ sasl.Mechanism = (*login)(nil)

func (l *login) Name() string { return l.cfg.Mechanism }

func (l *login) Start(context.Context) (sasl.StateMachine, []byte, error) {
	password, err := l.password()
	if err != nil {
		return nil, nil, err
	}
	switch l.cfg.Mechanism {
	case mechanismScram256:
		return startScram(sha256.New, l.cfg.Username, password)
	case mechanismScram512:
		return startScram(sha512.New, l.cfg.Username, password)
	default:
		return plainLogin{}, []byte("\x00" + l.cfg.Username + "\x00" + password), nil
	}
}

func (l *login) password() (string, error) {
	if l.cfg.PasswordEnv != "" {
		p := os.Getenv(l.cfg.PasswordEnv)
		if p == "" {
			return "", fmt.Errorf("%w: environment variable %s is empty", errCredentials, l.cfg.PasswordEnv)
		}
		return p, nil
	}
	s, err := strictyaml.ResolveSecret("", l.cfg.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errCredentials, err)
	}
	return s.Reveal(), nil
}

type plainLogin struct{}

func (plainLogin) Next(context.Context, []byte) (bool, []byte, error) { return true, nil, nil }

// scram is the client of RFC 5802 without channel binding, as Kafka uses it. The password is taken as it is: SASLprep
// changes nothing in ASCII, and startScram refuses the rest rather than fail to log in for a reason nobody would find.
type scram struct {
	hash      func() hash.Hash
	password  string
	nonce     string
	bare      string // client-first-message-bare
	signature []byte // What the server must prove to know.
}

func startScram(h func() hash.Hash, user, password string) (sasl.StateMachine, []byte, error) {
	for _, s := range []string{user, password} {
		for i := range len(s) {
			if s[i] < 0x20 || s[i] > 0x7e {
				return nil, nil, fmt.Errorf("%w: SCRAM names and passwords must be printable ASCII", errCredentials)
			}
		}
	}
	raw := make([]byte, scramNonceBytes)
	if _, err := rand.Read(raw); err != nil {
		return nil, nil, err
	}
	s := &scram{hash: h, password: password, nonce: base64.StdEncoding.EncodeToString(raw)}
	s.bare = "n=" + strings.NewReplacer("=", "=3D", ",", "=2C").Replace(user) + ",r=" + s.nonce
	return s, []byte("n,," + s.bare), nil
}

func (s *scram) Next(_ context.Context, challenge []byte) (bool, []byte, error) {
	if s.signature == nil {
		reply, err := s.final(string(challenge))
		return false, reply, err
	}
	got := scramFields(string(challenge))
	if e, ok := got["e"]; ok {
		return false, nil, fmt.Errorf("%w: the broker says %s", errCredentials, e)
	}
	if v, err := base64.StdEncoding.DecodeString(got["v"]); err != nil || !hmac.Equal(v, s.signature) {
		return false, nil, fmt.Errorf("%w: the broker does not know the password", errCredentials)
	}
	return true, nil, nil
}

// final answers the server's first message with the proof.
func (s *scram) final(serverFirst string) ([]byte, error) {
	f := scramFields(serverFirst)
	salt, err := base64.StdEncoding.DecodeString(f["s"])
	iter, ierr := strconv.Atoi(f["i"])
	if err != nil || ierr != nil || len(salt) == 0 || iter < scramIterMin || iter > scramIterMax ||
		!strings.HasPrefix(f["r"], s.nonce) || len(f["r"]) == len(s.nonce) {
		return nil, fmt.Errorf("%w: the broker's SCRAM challenge is not acceptable", errCredentials)
	}
	salted, err := pbkdf2.Key(s.hash, s.password, salt, iter, s.hash().Size())
	if err != nil {
		return nil, err
	}
	clientKey := s.mac(salted, "Client Key")
	stored := s.hash()
	stored.Write(clientKey)
	withoutProof := "c=biws,r=" + f["r"]
	auth := s.bare + "," + serverFirst + "," + withoutProof
	proof := s.mac(stored.Sum(nil), auth)
	for i := range proof {
		proof[i] ^= clientKey[i]
	}
	s.signature = s.mac(s.mac(salted, "Server Key"), auth)
	return []byte(withoutProof + ",p=" + base64.StdEncoding.EncodeToString(proof)), nil
}

func (s *scram) mac(key []byte, message string) []byte {
	m := hmac.New(s.hash, key)
	m.Write([]byte(message))
	return m.Sum(nil)
}

func scramFields(message string) map[string]string {
	fields := map[string]string{}
	for _, f := range strings.Split(message, ",") {
		if k, v, ok := strings.Cut(f, "="); ok {
			fields[k] = v
		}
	}
	return fields
}
