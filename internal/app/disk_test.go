package app

import (
	"strings"
	"testing"
)

func TestADiskIsNearlyFullByShareAndBytes(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		free, size uint64
		want       bool
	}{{10 * gib, 1000 * gib, false}, {gib / 2, 100 * gib, true}, {gib / 2, gib, false}, {0, gib, true}, {0, 0, false}} {
		if got, text := nearlyFull(c.free, c.size); got != c.want {
			t.Errorf("%d of %d bytes free: %v %q", c.free, c.size, got, text)
		}
	}
	if free, size, err := diskSpace(t.TempDir()); err == nil && (free > size || size == 0) {
		t.Errorf("%d of %d free", free, size)
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	for listen, bad := range map[string]string{"0.0.0.0:9460": "0.0.0.0", ":9460": "http://:", "[::]:9460": "[::]"} {
		c := HTTPConfig{Listen: listen}
		if got := c.External(); strings.Contains(got, bad) || !strings.HasSuffix(got, ":9460") {
			t.Errorf("links of %s begin with %s", listen, got)
		}
	}
	c := HTTPConfig{Listen: "127.0.0.1:9460"}
	if got := c.External(); got != "http://127.0.0.1:9460" {
		t.Error(got)
	}
}

func TestABriefErrorIsForPeople(t *testing.T) {
	long := "ping: code: 516, message: default: Authentication failed\nStack trace: " + strings.Repeat("x", 1000)
	if got := brief(&text{long}); len(got) > 210 || strings.Contains(got, "Stack") || !strings.Contains(got, "Authentication failed") {
		t.Error(got)
	}
}

type text struct{ s string }

func (t *text) Error() string { return t.s }
