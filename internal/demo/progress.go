package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// screen writes what a person watches: lines that stay, and below them one line of progress that is drawn over. On
// something that is no terminal the progress becomes a line of its own every few seconds.
type screen struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	drawn    int       // length of the progress line on screen
	printed  time.Time // when progress last became a line
	began    time.Time
}

// plainEvery is how often progress is printed where it can't be drawn over.
const plainEvery = 5 * time.Second

func newScreen(w io.Writer) *screen {
	s := &screen{w: w, began: time.Now()}
	s.printed = s.began
	if f, ok := w.(*os.File); ok {
		if st, err := f.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" {
			s.terminal = true
		}
	}
	return s
}

func (s *screen) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintf(s.w, format+"\n", args...)
}

// step says that a part is up, and how long it took.
func (s *screen) step(since time.Time, format string, args ...any) {
	s.line("  %6.1f s  %s", time.Since(since).Seconds(), fmt.Sprintf(format, args...))
}

func (s *screen) progress(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if !s.terminal {
		if time.Since(s.printed) >= plainEvery {
			s.printed = time.Now()
			fmt.Fprintln(s.w, text)
		}
		return
	}
	s.erase()
	fmt.Fprint(s.w, text)
	s.drawn = len(text)
}

func (s *screen) erase() {
	if s.drawn > 0 {
		fmt.Fprint(s.w, "\r"+strings.Repeat(" ", s.drawn)+"\r")
		s.drawn = 0
	}
}

// Write lets the installer of the library report its progress as lines.
func (s *screen) Write(p []byte) (int, error) {
	for l := range strings.Lines(string(p)) {
		s.line("            %s", strings.TrimRight(l, "\r\n"))
	}
	return len(p), nil
}

// bar draws how much of a whole is done.
func bar(share float64, width int) string {
	n := int(min(max(share, 0), 1) * float64(width))
	return "[" + strings.Repeat("=", n) + strings.Repeat(" ", width-n) + "]"
}
