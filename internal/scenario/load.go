package scenario

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/internal/strictyaml"
)

// Scenario is a checked scenario with its world. It does not change, and is safe for use by several generators at once.
type Scenario struct {
	Name  string // of its file, without the extension
	Title string
	Start time.Time
	End   time.Time
	Seed  int64 // the one to take unless another is asked for

	// Catalogue is the catalogue file as it is on disk: the world's services and what depends on what.
	Catalogue []byte

	midnight  time.Time
	file      file
	world     worldFile
	tickets   ticketsFile
	catalogue catalogueFile
}

// Load reads and checks scenarios/<name>.yaml of a file system such as deploy.Demo, with the files it names. Every
// mistake is in the error with its place.
func Load(fsys fs.FS, name string) (*Scenario, error) {
	return load(path.Join("scenarios", name+".yaml"), func(p string) ([]byte, error) { return fs.ReadFile(fsys, p) })
}

// LoadFile is Load for a scenario file anywhere on disk.
func LoadFile(name string) (*Scenario, error) { return load(filepath.ToSlash(name), os.ReadFile) }

func load(at string, read func(string) ([]byte, error)) (*Scenario, error) {
	s := &Scenario{Name: strings.TrimSuffix(path.Base(at), path.Ext(at))}
	if _, err := decode(read, at, &s.file); err != nil {
		return nil, err
	}
	beside := func(p string) string { return path.Join(path.Dir(at), p) }
	var errs strictyaml.Errors
	if _, err := decode(read, beside(s.file.World), &s.world); err != nil {
		errs.Add(strictyaml.Pos{File: at}, err)
	}
	raw, err := decode(read, beside(s.file.Catalogue), &s.catalogue)
	if err != nil {
		errs.Add(strictyaml.Pos{File: at}, err)
	}
	if s.file.Tickets != "" {
		if _, err := decode(read, beside(s.file.Tickets), &s.tickets); err != nil {
			errs.Add(strictyaml.Pos{File: at}, err)
		}
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	s.Catalogue, s.Title, s.Seed = raw, s.file.Title, s.file.Seed
	s.midnight = s.file.Date.UTC().Truncate(24 * time.Hour)
	s.Start, s.End = s.time(s.file.Start), s.time(s.file.End)
	if err := s.check(at); err != nil {
		return nil, err
	}
	return s, nil
}

// Names lists the scenarios of a file system such as deploy.Demo, sorted.
func Names(fsys fs.FS) ([]string, error) {
	files, err := fs.Glob(fsys, "scenarios/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list scenarios: %w", err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	return files, nil
}

func decode(read func(string) ([]byte, error), name string, into any) ([]byte, error) {
	raw, err := read(name)
	if err != nil {
		return nil, fmt.Errorf("read scenario file: %w", err)
	}
	return raw, strictyaml.Decode(name, raw, into)
}

func (s *Scenario) time(c Clock) time.Time { return s.midnight.Add(time.Duration(c)) }
