package detect

import (
	"slices"
	"strings"

	"github.com/tocsin-project/tocsin/internal/incident"
)

// titleOfOther speaks for kinds whose explanation begins with what is wrong; what follows a semicolon says how that is known.
func titleOfOther(f *incident.Finding) string {
	what, _, _ := strings.Cut(f.Explain, ";")
	return what
}

// onlyUnusual tells that nothing is known but gauges that depart from what is usual. Beside anything else they do not hold an
// incident open: unusual is not yet broken, and after an outage much is unusual for hours.
func (x *tracked) onlyUnusual() bool {
	for i := range x.Members {
		if x.Members[i].Finding.Kind != "gauge" {
			return false
		}
	}
	return true
}

func (x *tracked) hasKind(kind string) bool {
	return slices.ContainsFunc(x.Members, func(m member) bool { return m.Finding.Kind == kind })
}
