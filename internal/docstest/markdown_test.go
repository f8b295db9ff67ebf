package docstest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// block is one fenced block of a page.
type block struct {
	file string // relative to the root
	line int    // of its first line
	lang string // first word of the fence
	what string // the rest of it
	text string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.file, b.line) }

// page is one Markdown file.
type page struct {
	file   string
	prose  string // without fenced blocks
	blocks []block
}

func root(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal("the root of the module is not two folders up")
	}
	return dir
}

// pages reads the documentation.
func pages(t testing.TB) (all []page) {
	t.Helper()
	top := root(t)
	names := []string{"README.md", "CONTRIBUTING.md"}
	err := fs.WalkDir(os.DirFS(top), "docs", func(p string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".md") {
			names = append(names, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		p, err := parse(name, string(data))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

var fence = regexp.MustCompile("^( *)(```+)([^`]*)$")

func parse(name, text string) (page, error) {
	p := page{file: name}
	var open *block
	var marker, indent string
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open == nil && m != nil:
			lang, what, _ := strings.Cut(strings.TrimSpace(m[3]), " ")
			indent, marker = m[1], m[2]
			open = &block{file: name, line: i + 2, lang: lang, what: strings.TrimSpace(what)}
			p.prose += "\n"
		case open != nil && m != nil && m[2] == marker && strings.TrimSpace(m[3]) == "":
			p.blocks = append(p.blocks, *open)
			open = nil
			p.prose += "\n"
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
			p.prose += "\n"
		default:
			p.prose += line + "\n"
		}
	}
	if open != nil {
		return p, fmt.Errorf("%s: the block is not closed", open)
	}
	return p, nil
}

// blocks of one language, over all pages.
func blocks(t testing.TB, lang string) (out []block) {
	t.Helper()
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.lang == lang {
				out = append(out, b)
			}
		}
	}
	return out
}

func TestBlocksSayWhatTheyAre(t *testing.T) {
	known := map[string]bool{"yaml": true, "sql": true, "shell": true, "json": true, "text": true}
	for _, p := range pages(t) {
		if p.file == "CONTRIBUTING.md" {
			continue // for people who know where they are
		}
		for _, b := range p.blocks {
			if !known[b.lang] {
				t.Errorf("%s: the fence says %q; want yaml, sql, shell, json or text", b, b.lang)
			}
		}
	}
}

func TestParse(t *testing.T) {
	p, err := parse("x.md", "a\n```yaml rules\nk: v\n```\nb\n  ```sql\n  SELECT 1\n  ```\n")
	if err != nil || len(p.blocks) != 2 {
		t.Fatalf("%+v, %v", p, err)
	}
	if b := p.blocks[0]; b.line != 3 || b.lang != "yaml" || b.what != "rules" || b.text != "k: v\n" {
		t.Errorf("first block is %+v", b)
	}
	if b := p.blocks[1]; b.text != "SELECT 1\n" {
		t.Errorf("second block is %+v", b)
	}
	if _, err := parse("x.md", "```\nopen\n"); err == nil {
		t.Error("an open block is not noticed")
	}
}

var (
	link     = regexp.MustCompile(`!?\[[^\]]*\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchor is the name that GitHub gives a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

func TestLinksLeadSomewhere(t *testing.T) {
	anchors := map[string]map[string]bool{}
	all := pages(t)
	for _, p := range all {
		anchors[p.file] = map[string]bool{}
		for _, h := range heading.FindAllStringSubmatch(p.prose, -1) {
			anchors[p.file][anchor(h[1])] = true
		}
	}
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(p.prose, -1) {
			if strings.Contains(m[1], "://") {
				continue // pages of others are not this test's business
			}
			file, fragment, _ := strings.Cut(m[1], "#")
			target := p.file
			if file != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(p.file), file))
				if _, err := os.Stat(filepath.Join(root(t), target)); err != nil {
					t.Errorf("%s links to %s, which is not there", p.file, m[1])
					continue
				}
			}
			if fragment != "" && !anchors[target][fragment] {
				t.Errorf("%s links to %s, which has no such heading", p.file, m[1])
			}
		}
	}
}

// A page that nobody finds is not read.
func TestIndexListsEveryPage(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(root(t), "docs", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages(t) {
		name, inside := strings.CutPrefix(p.file, "docs/")
		if inside && name != "README.md" && !strings.Contains(string(index), "("+name+")") {
			t.Errorf("docs/README.md does not link to %s", name)
		}
	}
}
