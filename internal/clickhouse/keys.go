package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/tocsin-project/tocsin/internal/ingest"
	"github.com/tocsin-project/tocsin/internal/signal"
)

const (
	keysCachedMax = 500_000
	keysAskedMax  = 5_000 // ids of one query: they travel in its address
)

// keyCache knows which keys the table holds, and their words. It forgets everything when it is full: what is missing
// is asked for, or stored, again.
type keyCache struct {
	number uint32 // by which keys know it
	mu     sync.Mutex
	keys   map[uint64]signal.Key
}

var keyCaches atomic.Uint32

func newKeyCache() *keyCache {
	return &keyCache{number: keyCaches.Add(1), keys: map[uint64]signal.Key{}}
}

func (c *keyCache) get(id uint64) (signal.Key, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.keys[id]
	return k, ok
}

func (c *keyCache) put(keys map[uint64]signal.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.keys)+len(keys) > keysCachedMax {
		clear(c.keys)
	}
	maps.Copy(c.keys, keys)
}

// store makes sure that the table has the words of all the cells' keys, before the cells can be seen.
func (c *keyCache) store(ctx context.Context, d *DB, cells []ingest.Cell) error {
	fresh := map[uint64]signal.Key{}
	var unknown []*ingest.Key
	for i := range cells {
		k := cells[i].Key()
		if k.KnownTo(c.number) {
			continue
		}
		unknown = append(unknown, k)
		if _, ok := c.get(k.ID); !ok {
			fresh[k.ID] = k.Key
		}
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(fresh)), blockRowsMax) {
		b := newBlock("keys", len(ids))
		column(b, "id", func(i int) uint64 { return ids[i] })
		column(b, "service", func(i int) string { return fresh[ids[i]].Service })
		column(b, "operation", func(i int) string { return fresh[ids[i]].Operation })
		column(b, "access", func(i int) string { return fresh[ids[i]].Access.String() })
		column(b, "attributes", func(i int) map[string]string { return fresh[ids[i]].Attributes.Map() })
		if err := d.insert(ctx, "", b); err != nil { // the table keeps one row of each id by itself
			return err
		}
	}
	c.put(fresh)
	for _, k := range unknown {
		k.Introduce(c.number)
	}
	return nil
}

// load finds the words behind ids.
func (c *keyCache) load(ctx context.Context, d *DB, ids []uint64) (map[uint64]signal.Key, error) {
	found := make(map[uint64]signal.Key, len(ids))
	missing := map[uint64]struct{}{}
	for _, id := range ids {
		if k, ok := c.get(id); ok {
			found[id] = k
		} else {
			missing[id] = struct{}{}
		}
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(missing)), keysAskedMax) {
		took := func(id uint64, k signal.Key, access string, attributes map[string]string) (err error) {
			if k.Access, err = signal.ParseAccess(access); err != nil {
				return fmt.Errorf("key %d: %w", id, err)
			}
			k.Attributes = signal.NewAttributes(attributes)
			found[id] = k
			delete(missing, id)
			return nil
		}
		if err := d.keys(ctx, took, chunk); err != nil {
			return nil, err
		}
	}
	for id := range missing {
		return nil, &Error{Op: "read keys", Reason: ReasonServer, Err: fmt.Errorf("key %d is counted but has no row in keys", id)}
	}
	c.put(found)
	return found, nil
}

// keys reads the words of ids.
func (d *DB) keys(ctx context.Context, took func(id uint64, k signal.Key, access string, attributes map[string]string) error, ids []uint64) error {
	var id uint64
	var k signal.Key
	var access string
	if d.cfg.Protocol != "native" {
		return d.queryBinary(ctx, "read keys", queryText("keys.sql"), func(r *binaryRows) error {
			id, k.Service, k.Operation, access = r.uint64(), r.text(), r.text(), r.text()
			if attributes := r.texts2(); r.err == nil {
				return took(id, k, access, attributes)
			}
			return r.err
		}, ch.Named("ids", ids))
	}
	return d.query(ctx, "read keys", queryText("keys.sql"), func(r driver.Rows) error {
		var attributes map[string]string
		if err := r.Scan(&id, &k.Service, &k.Operation, &access, &attributes); err != nil {
			return err
		}
		return took(id, k, access, attributes)
	}, ch.Named("ids", ids))
}
