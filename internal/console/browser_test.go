package console

import (
	"bytes"
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tocsin-project/tocsin/internal/incident"
)

var screenshots = flag.String("screenshots", "", "folder to put pictures of the pages into, to look at")

// chromium runs a real browser against an address of this machine and returns what it printed.
func chromium(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	path := "/usr/bin/chromium"
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath("chromium"); err != nil {
			t.Skip("no chromium on this machine: the pages are not looked at with a real browser")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	profile, err := os.MkdirTemp("", "console-test")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(profile)
	cmd := exec.CommandContext(ctx, path, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--enable-logging=stderr", "--user-data-dir=" + profile,
	}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, errs.String())
	}
	return out.String(), errs.String()
}

// A page that was opened while all was quiet shows the incident without being loaded anew, and breaks none of its own
// security policy on the way.
func TestBrowserShowsAnIncidentThatBeginsLater(t *testing.T) {
	f := newFake()
	var pages atomic.Int32
	c, _ := serve(t, f)
	mux := http.NewServeMux()
	c.Register(mux)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && pages.Add(1) == 2 {
			f.put(incident.EventDeclared, outage())
		}
		mux.ServeHTTP(w, r)
	}))
	defer s.Close()
	dom, log := chromium(t, "--dump-dom", "--virtual-time-budget=9000", s.URL+"/")
	if n := pages.Load(); n < 3 {
		t.Errorf("the page was asked for %d times: it does not refresh itself", n)
	}
	for _, want := range []string{"<title>(1) Tocsin</title>", "1 open incident</span>", "mysql/permissions/primary exhausted", "clean-up of orphaned grants"} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page has no %q:\n%s", want, dom)
		}
	}
	if strings.Contains(dom, "Nothing is wrong") {
		t.Error("the page still says that nothing is wrong")
	}
	if strings.Contains(log, "Content Security Policy") || strings.Contains(log, "Uncaught") {
		t.Errorf("the browser complains:\n%s", log)
	}
}

// When Tocsin no longer answers, a page that is open says that it is old instead of looking calm.
func TestBrowserSaysThatThePageIsOld(t *testing.T) {
	f := newFake()
	var pages atomic.Int32
	c, _ := serve(t, f)
	mux := http.NewServeMux()
	c.Register(mux)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && pages.Add(1) > 1 {
			http.Error(w, "gone", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	defer s.Close()
	if dom, _ := chromium(t, "--dump-dom", "--virtual-time-budget=5000", s.URL+"/"); !strings.Contains(dom, "this page is old") {
		t.Errorf("the page does not say that it is old:\n%s", dom)
	}
}

// TestScreenshots is for eyes: go test ./internal/console -run Screenshots -screenshots=DIR.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("makes pictures with -screenshots=DIR only")
	}
	f := newFake()
	f.put(incident.EventSuspected, outage())
	f.put(incident.EventDeclared, outage())
	minor := outage()
	minor.ID, minor.Title, minor.Severity, minor.State, minor.AcknowledgedBy, minor.Muted = "inc-2", "search / query / read slow in iad", incident.Minor, incident.Acknowledged, "ada", "maintenance of lb/iad until 10:00"
	f.put(incident.EventAcknowledged, minor)
	over := outage()
	over.ID, over.Title, over.Severity, over.State, over.StartedAt, over.ResolvedAt = "inc-0", "uploads / put / write fails", incident.Major, incident.Resolved, began.Add(-30*time.Hour), began.Add(-29*time.Hour)
	f.put(incident.EventResolved, over)
	watched := outage()
	watched.ID, watched.Title, watched.State, watched.Reason = "inc-3", "lb/iad/flows near its limit", incident.Suspected, "82% of its flows are used, which 3 services depend on."
	f.put(incident.EventSuspected, watched)
	f.series = curves(outage())
	_, s := serve(t, f, func(o *Options) {
		o.Series = func(context.Context, incident.Incident) ([]Series, error) { return f.series, nil }
	})
	for _, v := range []struct{ name, path, size, mode string }{
		{"index", "/", "1200,1100", "light"}, {"index-dark", "/", "1200,1100", "dark"}, {"index-phone", "/", "500,1500", "light"},
		{"incident", "/incidents/inc-1", "1200,1700", "light"}, {"incident-dark", "/incidents/inc-1", "1200,1700", "dark"}, {"incident-phone", "/incidents/inc-1", "500,2600", "light"},
	} {
		args := []string{"--screenshot=" + filepath.Join(*screenshots, v.name+".png"), "--window-size=" + v.size, "--hide-scrollbars"}
		if v.mode == "dark" {
			args = append(args, "--blink-settings=preferredColorScheme=0")
		}
		chromium(t, append(args, s.URL+v.path)...)
	}
}
