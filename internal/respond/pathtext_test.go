package respond

import (
	"testing"

	"github.com/tocsin-project/tocsin/internal/incident"
	"github.com/tocsin-project/tocsin/internal/signal"
)

func TestPathTextOfRoutes(t *testing.T) {
	for op, want := range map[string]string{
		"create":               "issues/create: 96% of writes fail (usually 0.3%)",
		"/:owner/:repo/issues": "issues /:owner/:repo/issues: 96% of writes fail (usually 0.3%)",
	} {
		p := incident.PathImpact{Path: signal.Path{Service: "issues", Operation: op, Access: signal.Write}, PeakShare: 0.96, BaseShare: 0.003}
		if got := PathText(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
