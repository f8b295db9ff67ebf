package clickhouse

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// migration is one file of schemas/clickhouse.
type migration struct {
	version    uint32
	name       string // of the file
	checksum   string // of the file's bytes, not of what a template makes of them
	statements []string
}

// loadMigrations reads every *.sql file in order. Their names begin with their version, counted from 0001 without a gap.
func loadMigrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "clickhouse/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	slices.Sort(names)
	var out []migration
	for i, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read migration: %w", err)
		}
		m := migration{name: path.Base(name)}
		number, _, _ := strings.Cut(m.name, "_")
		version, err := strconv.ParseUint(number, 10, 32)
		if err != nil || version != uint64(i+1) {
			return nil, fmt.Errorf("migration %s: its name should begin with %04d_", m.name, i+1)
		}
		m.version = uint32(version)
		sum := sha256.Sum256(text)
		m.checksum = hex.EncodeToString(sum[:])
		if m.statements, err = statements(m.name, string(text)); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// statements fills the file's template in for one node. The functions are the places where a cluster will differ.
func statements(name, text string) ([]string, error) {
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{
		"engine": func(engine string, args ...string) string {
			return "ENGINE = " + engine + "(" + strings.Join(args, ", ") + ")"
		},
		// settings of a table whose inserts are deduplicated over so many parts. On one node the engine's default is none.
		"settings": func(window int) string {
			return fmt.Sprintf("SETTINGS non_replicated_deduplication_window = %d", window)
		},
		"streams": func() []stream { return streams },
	}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("migration %s: %w", name, err)
	}
	var b strings.Builder
	if err := t.Execute(&b, nil); err != nil {
		return nil, fmt.Errorf("migration %s: %w", name, err)
	}
	return split(b.String()), nil
}
