package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/respond"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string) *WAL {
	t.Helper()
	w, err := OpenWAL(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func load(t *testing.T, s respond.Store) map[string]string {
	t.Helper()
	values, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for k, v := range values {
		out[k] = string(v)
	}
	return out
}

func put(t *testing.T, s respond.Store, key, value string) {
	t.Helper()
	v := []byte(value)
	if value == "" {
		v = nil
	}
	if err := s.Put(t.Context(), key, v); err != nil {
		t.Fatal(err)
	}
}

// Wherever a crash cuts the file, what was acknowledged before the cut entry is there, and writing goes on.
func TestTornTailIsCutAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir)
	put(t, w, "a/x", "one")
	put(t, w, "b/x", "two")
	whole := w.size
	// What is written over the torn entry ends where this one seems to begin anew.
	put(t, w, "a/x", "pad!"+strings.Repeat(string(encode("evil/x", []byte("1"))), 3))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	for n := int(whole); n < len(data); n++ {
		torn := t.TempDir()
		if err := os.WriteFile(filepath.Join(torn, fileName), data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		w := open(t, torn)
		put(t, w, "c/x", "four")
		_ = w.Close()
		w = open(t, torn)
		if diff := cmp.Diff(map[string]string{"a/x": "one", "b/x": "two", "c/x": "four"}, load(t, w)); diff != "" {
			t.Fatalf("cut at %d: %s", n, diff)
		}
		_ = w.Close()
	}
	for n := range len(magic) { // a crash while the file was made
		torn := t.TempDir()
		if err := os.WriteFile(filepath.Join(torn, fileName), data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		put(t, open(t, torn), "a", "1")
	}
}

func TestFlippedByteEndsTheFile(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir)
	put(t, w, "a", "one")
	put(t, w, "b", "two")
	_ = w.Close()
	path := filepath.Join(dir, fileName)
	data, _ := os.ReadFile(path)
	data[len(data)-1] ^= 1
	_ = os.WriteFile(path, data, 0o600)
	if diff := cmp.Diff(map[string]string{"a": "one"}, load(t, open(t, dir))); diff != "" {
		t.Error(diff)
	}
}

func TestForeignFileIsRefusedNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	_ = os.WriteFile(filepath.Join(dir, fileName), []byte("somebody's diary, which is long enough"), 0o600)
	if _, err := OpenWAL(dir); err == nil {
		t.Fatal("opened a file that is no outbox")
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if _, err := OpenWAL(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v, want %v", err, ErrInUse)
	}
}

func TestFileStaysBoundedAndDeletesAreKept(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir)
	big := string(make([]byte, 100<<10))
	for i := range 100 { // 10 MB written, 100 KB alive
		put(t, w, "k", big+fmt.Sprint(i))
	}
	put(t, w, "gone", "1")
	put(t, w, "gone", "")
	info, err := os.Stat(filepath.Join(dir, fileName))
	if err != nil || info.Size() > 2*compactAfter {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	_ = w.Close()
	if diff := cmp.Diff(map[string]string{"k": big + "99"}, load(t, open(t, dir))); diff != "" {
		t.Error("content differs after compaction and restart")
	}
}

// A failed write leaves the end of the file unknown; the next write must not be lost behind it.
func TestGoesOnAfterAFailedWrite(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir)
	put(t, w, "a", "1")
	_ = w.file.Close() // every write fails from now on, as on a dying disk; the folder still works
	put(t, w, "b", "2")
	_ = w.Close()
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, load(t, open(t, dir))); diff != "" {
		t.Error(diff)
	}
}

type topic struct {
	mu     sync.Mutex
	values map[string][]byte
	down   bool
	hang   bool
}

func (f *topic) Produce(ctx context.Context, key string, value []byte) error {
	f.mu.Lock()
	down, hang := f.down, f.hang
	f.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if down {
		return errors.New("no brokers")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.values == nil {
		f.values = map[string][]byte{}
	}
	f.values[key] = value
	if value == nil {
		delete(f.values, key)
	}
	return nil
}

func (f *topic) LoadAll(context.Context) (map[string][]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return nil, errors.New("no brokers")
	}
	return maps.Clone(f.values), nil
}

func (f *topic) set(down, hang bool) { f.mu.Lock(); f.down, f.hang = down, hang; f.mu.Unlock() }

func rec(rev int, text string) string { return fmt.Sprintf(`{"revision":%d,"text":%q}`, rev, text) }

func TestMirrorTakesTheLaterOfTwoCopies(t *testing.T) {
	local, remote := &Memory{}, &topic{values: map[string][]byte{
		"both/p": []byte(rec(3, "remote")), "remote/p": []byte(rec(1, "r")), "stale/p": []byte(rec(1, "old")),
	}}
	put(t, local, "both/p", rec(2, "local"))
	put(t, local, "stale/p", rec(9, "new"))
	put(t, local, "local/p", rec(1, "l"))
	synctest.Test(t, func(t *testing.T) {
		m := NewMirror(local, remote, respond.Newer, slog.New(slog.DiscardHandler))
		want := map[string]string{"both/p": rec(3, "remote"), "remote/p": rec(1, "r"), "stale/p": rec(9, "new"), "local/p": rec(1, "l")}
		if diff := cmp.Diff(want, load(t, m)); diff != "" {
			t.Error(diff)
		}
		time.Sleep(2 * resendEvery)
		synctest.Wait()
		if string(remote.values["stale/p"]) != rec(9, "new") || string(remote.values["local/p"]) != rec(1, "l") {
			t.Errorf("the topic was not brought up to date: %s", remote.values)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Kafka being down or hanging costs one time-out, not each write, and nothing is missing in the topic afterwards.
func TestMirrorGoesOnWithoutKafka(t *testing.T) {
	for name, hang := range map[string]bool{"down": false, "hanging": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				remote := &topic{}
				m := NewMirror(&Memory{}, remote, respond.Newer, slog.New(slog.DiscardHandler))
				healthy := true
				m.Reachable = func(ok bool, _ string) { healthy = ok }
				remote.set(!hang, hang)
				begun := time.Now()
				for i := range 50 {
					put(t, m, fmt.Sprintf("k%d/p", i), rec(1, "x"))
				}
				put(t, m, "k7/p", rec(2, "newest"))
				put(t, m, "k8/p", "")
				if took := time.Since(begun); took > produceTimeout {
					t.Errorf("52 writes took %s", took)
				}
				if healthy {
					t.Error("nobody was told that the topic is gone")
				}
				remote.set(false, false)
				time.Sleep(2 * resendEvery)
				synctest.Wait()
				if len(remote.values) != 49 || string(remote.values["k7/p"]) != rec(2, "newest") || !healthy {
					t.Errorf("the topic has %d keys, healthy %v", len(remote.values), healthy)
				}
				_ = m.Close()
			})
		})
	}
}

// A page of the console looks into the outbox every two seconds while the loop writes to it. What it read before the
// loop's write must not come back over it, in neither copy.
func TestPeekChangesNothing(t *testing.T) {
	w, f := open(t, t.TempDir()), &topic{}
	newest := []byte(`{"revision":3}`)
	slow := &racing{topic: f, meanwhile: func() {
		put(t, w, "i/p", string(newest))
		_ = f.Produce(t.Context(), "i/p", newest)
	}}
	put(t, w, "i/p", `{"revision":1}`)
	_ = f.Produce(t.Context(), "i/p", []byte(`{"revision":2}`))
	m := NewMirror(w, slow, respond.Newer, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = m.Close() })
	f.set(false, false)
	if got, err := m.Peek(t.Context()); err != nil || string(got["i/p"]) != `{"revision":2}` {
		t.Errorf("peeked at %s, %v", got["i/p"], err)
	}
	f.set(true, false)
	if _, err := m.Peek(t.Context()); err != nil {
		t.Error(err)
	}
	f.set(false, false)
	m.catchUp(t.Context())
	if got := load(t, w)["i/p"]; got != string(newest) || string(f.values["i/p"]) != got {
		t.Errorf("after looking the file has %s, the topic %s", got, f.values["i/p"])
	}
	if m.down {
		t.Error("looking said something about whether the topic takes writes")
	}
}

// racing lets something happen after the topic was read and before its reader goes on.
type racing struct {
	*topic
	meanwhile func()
}

func (r *racing) LoadAll(ctx context.Context) (map[string][]byte, error) {
	values, err := r.topic.LoadAll(ctx)
	r.meanwhile()
	return values, err
}
