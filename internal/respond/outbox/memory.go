package outbox

import (
	"context"
	"maps"
	"sync"

	"github.com/tocsin-project/tocsin/internal/respond"
)

// Memory forgets everything with the process. It serves drills and tests.
type Memory struct {
	mu     sync.Mutex
	values map[string][]byte
}

var _ respond.Store = (*Memory)(nil)

// Load gives all values.
func (m *Memory) Load(context.Context) (map[string][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.values), nil
}

// Put keeps a value.
func (m *Memory) Put(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	if value == nil {
		delete(m.values, key)
	} else {
		m.values[key] = value
	}
	return nil
}

// Close does nothing.
func (m *Memory) Close() error { return nil }
