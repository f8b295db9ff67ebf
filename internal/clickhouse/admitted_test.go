package clickhouse

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/tocsin-project/tocsin/internal/ingest"
)

// Of several that store one version one stays, and all read the same.
func TestOneVersionOfValuesStays(t *testing.T) {
	db := migrated(t)
	const writers, versions = 4, 5
	stores := make([]*Store, writers)
	for i := range stores {
		stores[i] = NewStore(db)
	}
	for version := uint64(1); version <= versions; version++ {
		var group sync.WaitGroup
		errs := make([]error, writers)
		for i, s := range stores {
			group.Go(func() {
				v := ingest.Value{Service: "s", Attribute: "client", Value: fmt.Sprintf("v%d of %d", version, i)}
				changes := []ingest.Admission{{Version: version, Value: v}, {Version: version, Value: ingest.Value{Service: "s", Value: "gone"}, Retired: true}}
				errs[i] = s.Admit(context.Background(), "p", version, changes)
			})
		}
		group.Wait()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := stores[0].Admitted(t.Context(), "p", 0)
	if err != nil || len(all) != 2*versions {
		t.Fatalf("%d changes, %v", len(all), err)
	}
	if a, b := all[0], all[1]; !a.Retired || a.Value.Value != "gone" || b.Retired || b.Attribute != "client" || b.Version != 1 {
		t.Errorf("first %+v, then %+v", a, b)
	}
	if rest, err := stores[1].Admitted(t.Context(), "p", versions-1); err != nil || len(rest) != 2 || rest[0].Version != versions {
		t.Errorf("after the last but one: %+v, %v", rest, err)
	}
	if other, err := stores[1].Admitted(t.Context(), "q", 0); err != nil || len(other) != 0 {
		t.Errorf("of another pipeline: %+v, %v", other, err)
	}
}
