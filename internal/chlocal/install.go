package chlocal

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tocsin-project/tocsin/cmd/chlocal/lib"
)

// ErrNoNPM says that the library is not installed and npm, which fetches it, is not on this machine.
var ErrNoNPM = errors.New("npm is not installed")

// InstallOptions may be left zero.
type InstallOptions struct {
	CacheDir string    // default: tocsin/chdb in os.UserCacheDir
	Progress io.Writer // gets a line every few seconds while something takes long; default: nothing
}

// progressEvery is how often a waiting user hears that it goes on.
const progressEvery = 2 * time.Second

// pin is one package of the lockfile.
type pin struct {
	Name      string
	Version   string `json:"version"`
	Integrity string `json:"integrity"`
}

// packages names the library's package and file for each platform. A port adds a line here and an optional dependency
// in cmd/chlocal/lib.
var packages = map[string]struct{ name, file string }{
	"linux/amd64": {"@chdb/lib-linux-x64-gnu", "libchdb.so"},
}

// Install returns the path of the engine's library, fetching it with npm first if this user's cache does not have the
// pinned version. The cache is shared by all checkouts; of several processes at once one installs and the others wait.
func Install(ctx context.Context, opts InstallOptions) (string, error) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	want, ok := packages[platform]
	if !ok {
		return "", fmt.Errorf("the embedded ClickHouse is not available for %s: use a ClickHouse server instead", platform)
	}
	p, err := pinned(want.name)
	if err != nil {
		return "", err
	}
	if opts.Progress == nil {
		opts.Progress = io.Discard
	}
	if opts.CacheDir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the cache for the embedded ClickHouse: %w", err)
		}
		opts.CacheDir = filepath.Join(user, "tocsin", "chdb")
	}
	dir := filepath.Join(opts.CacheDir, p.key())
	path := filepath.Join(dir, want.file)
	if installed(path) {
		return path, nil
	}
	if err := os.MkdirAll(opts.CacheDir, 0o755); err != nil {
		return "", fmt.Errorf("make the cache for the embedded ClickHouse: %w", err)
	}
	unlock, err := lockFile(ctx, dir+".lock", opts.Progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	if installed(path) { // by the one we waited for
		return path, nil
	}
	if err := fetch(ctx, p, dir, want.file, opts.Progress); err != nil {
		return "", err
	}
	return path, nil
}

func installed(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// key names the folder of a version: another checksum is another folder.
func (p pin) key() string {
	sum := p.Integrity
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "sha512-")); err == nil && len(raw) == sha512.Size {
		sum = hex.EncodeToString(raw)
	}
	return p.Version + "-" + sum[:12]
}

func pinned(name string) (pin, error) {
	text, err := lib.Files.ReadFile("package-lock.json")
	if err != nil {
		return pin{}, fmt.Errorf("read the lockfile of the embedded ClickHouse: %w", err)
	}
	var lock struct {
		Packages map[string]pin `json:"packages"`
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return pin{}, fmt.Errorf("read the lockfile of the embedded ClickHouse: %w", err)
	}
	p := lock.Packages["node_modules/"+name]
	p.Name = name
	if p.Version == "" || len(p.Integrity) < 12 {
		return pin{}, fmt.Errorf("the lockfile of the embedded ClickHouse does not pin %s", name)
	}
	return p, nil
}

// fetch runs npm in a folder beside dir and renames the package's folder to dir once it is whole, so that dir is never
// seen half.
func fetch(ctx context.Context, p pin, dir, file string, progress io.Writer) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return fmt.Errorf("the embedded ClickHouse (%s) is fetched with npm: %w; install Node.js with npm, or give the path of libchdb.so", p.Name, ErrNoNPM)
	}
	stale, _ := filepath.Glob(dir + ".tmp-*") // of installers that were killed: the lock is ours
	for _, s := range stale {
		os.RemoveAll(s)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".tmp-")
	if err != nil {
		return fmt.Errorf("install the embedded ClickHouse: %w", err)
	}
	defer os.RemoveAll(tmp)
	err = fs.WalkDir(lib.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := lib.Files.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(tmp, path), text, 0o644)
	})
	if err != nil {
		return fmt.Errorf("install the embedded ClickHouse: %w", err)
	}
	fmt.Fprintf(progress, "Installing the embedded ClickHouse %s (170 MB to fetch, 570 MB on disk) into %s\n", p.Version, dir)
	if err := runNPM(ctx, npm, tmp, p, progress); err != nil {
		return err
	}
	got := filepath.Join(tmp, "node_modules", filepath.FromSlash(p.Name))
	if err := syncFile(filepath.Join(got, file)); err != nil {
		return fmt.Errorf("install the embedded ClickHouse: %w", err)
	}
	os.RemoveAll(dir) // an empty or broken one, as installed said no
	if err := os.Rename(got, dir); err != nil {
		return fmt.Errorf("install the embedded ClickHouse: %w", err)
	}
	fmt.Fprintf(progress, "Installed the embedded ClickHouse %s\n", p.Version)
	return nil
}

// syncFile keeps a power cut from leaving an empty file under the final name.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
