package app

import (
	"slices"

	"github.com/tocsin-project/tocsin/internal/rule"
	"github.com/tocsin-project/tocsin/internal/signal"
)

// known is what rules may name here. An installation without a catalogue knows nothing of what there is.
func known(f *Files) (k rule.Known) {
	for _, s := range f.Catalogue.Services {
		k.Services = append(k.Services, s.Name)
	}
	for _, a := range f.Catalogue.Areas {
		k.Areas = append(k.Areas, a.Name)
	}
	for _, r := range f.Catalogue.Resources {
		k.Resources, k.Kinds = append(k.Resources, r.Name), append(k.Kinds, r.Kind)
	}
	for _, p := range f.Pipelines.Pipelines {
		if p.Stream != signal.Requests {
			continue
		}
		if len(p.Requests.Attributes) == 0 {
			k.Attributes = nil // it keeps all
			return k
		}
		k.Attributes = append(k.Attributes, rule.SortedKeys(p.Requests.Attributes)...)
	}
	slices.Sort(k.Attributes)
	return k
}
