// Command run measures package evidence against its rivals: tables as Markdown, and one page with plots. make bench-evidence.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tocsin-project/tocsin/internal/evidencebench"
	"github.com/tocsin-project/tocsin/internal/measured"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "evidencebench:", err)
		os.Exit(1)
	}
}

func run() error {
	quick := flag.Bool("quick", false, "few seeds: minutes, to look at the page")
	page := flag.String("page", "bin/evidence.html", "file to write the page to")
	pictures := flag.String("pictures", "", "folder to write the plots to, as files for the docs")
	docs := flag.String("docs", "", "file whose text between <!-- bench --> and <!-- /bench --> becomes the tables")
	save := flag.String("save", "", "file to save what was measured to")
	from := flag.String("from", "", "file that was saved: conclude and draw again, without measuring")
	flag.Parse()
	m, err := measure(*quick, *from, *save)
	if err != nil {
		return err
	}
	o := m.Conclude()
	var text, html bytes.Buffer
	if err := o.Write(&text); err != nil {
		return err
	}
	if err := o.Page(&html); err != nil {
		return err
	}
	if _, err := os.Stdout.Write(text.Bytes()); err != nil {
		return fmt.Errorf("writing the tables: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(*page), 0o755); err != nil { //nolint:gosec // for everybody to read
		return fmt.Errorf("making the page's folder: %w", err)
	}
	if err := os.WriteFile(*page, html.Bytes(), 0o644); err != nil { //nolint:gosec // for everybody to read
		return fmt.Errorf("writing the page: %w", err)
	}
	fmt.Fprintln(os.Stderr, "wrote", *page)
	if *pictures != "" {
		if err := o.Pictures(*pictures); err != nil {
			return err
		}
	}
	if *docs != "" {
		return replace(*docs, text.Bytes())
	}
	return nil
}

// measure measures, or reads what was.
func measure(quick bool, from, save string) (*evidencebench.Measured, error) {
	if from != "" {
		f, err := os.Open(from) //nolint:gosec // named by who runs it
		if err != nil {
			return nil, fmt.Errorf("opening what was measured: %w", err)
		}
		defer f.Close()
		return evidencebench.Load(f)
	}
	r := evidencebench.Full
	if quick {
		r = evidencebench.Quick
	}
	began := time.Now()
	m := r.Measure(evidencebench.BenchModel(), func(s string) {
		fmt.Fprintf(os.Stderr, "%6s %s\n", time.Since(began).Round(time.Second), s)
	})
	m.Took = measured.SelfCPU().Round(time.Second)
	if save == "" {
		return m, nil
	}
	var b bytes.Buffer
	if err := m.Save(&b); err != nil {
		return nil, err
	}
	if err := os.WriteFile(save, b.Bytes(), 0o644); err != nil { //nolint:gosec // for everybody to read
		return nil, fmt.Errorf("saving what was measured: %w", err)
	}
	return m, nil
}

// replace puts the tables into a document, between its two marks.
func replace(file string, text []byte) error {
	old, err := os.ReadFile(file) //nolint:gosec // named by who runs it
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	from, to := []byte("<!-- bench -->\n"), []byte("<!-- /bench -->")
	before, rest, ok := bytes.Cut(old, from)
	_, after, ok2 := bytes.Cut(rest, to)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no <!-- bench --> and <!-- /bench --> to put the tables between", file)
	}
	if err := os.WriteFile(file, bytes.Join([][]byte{before, from, text, to, after}, nil), 0o644); err != nil { //nolint:gosec // as it was
		return fmt.Errorf("writing the document: %w", err)
	}
	return nil
}
