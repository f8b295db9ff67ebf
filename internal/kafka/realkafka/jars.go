package realkafka

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrUnavailable is why there is no broker where Java, Maven or the jars cannot be had. Callers say so and go on with the
// embedded one.
var ErrUnavailable = errors.New("no Apache Kafka can be had")

const (
	javaMin         = 17
	downloadTimeout = 5 * time.Minute
	mavenPlugin     = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
)

// sums has for each version the SHA-256 of all of its jars, as sha256sum prints them.
//
//go:embed jars/*.sha256
var sums embed.FS

// release is what a version needs.
type release struct {
	artifacts []string // group:artifact:version
	zookeeper bool     // It has no KRaft that is fit for use.
}

var releases = map[string]release{
	"4.3.1": {artifacts: []string{"org.apache.kafka:kafka_2.13:4.3.1", "org.apache.kafka:kafka-tools:4.3.1",
		"org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"}},
	"3.9.1": {artifacts: []string{"org.apache.kafka:kafka_2.13:3.9.1", "org.slf4j:slf4j-reload4j:1.7.36"}},
	"2.8.2": {artifacts: []string{"org.apache.kafka:kafka_2.13:2.8.2", "org.slf4j:slf4j-reload4j:1.7.36"}, zookeeper: true},
}

// Versions lists what can be run, the newest first.
func Versions() []string {
	return slices.SortedFunc(maps.Keys(releases), func(a, b string) int { return strings.Compare(b, a) })
}

// Available finds Java and the jars of a version, and fetches what is missing (about 50 MB, once for all clones of the
// repository). Its error is an ErrUnavailable with a reason of one line.
func Available(ctx context.Context, version string) error {
	if _, err := find(ctx, version); err != nil {
		return err
	}
	return nil
}

type runtime struct{ java, classpath string }

func find(ctx context.Context, version string) (runtime, error) {
	java, err := findJava(ctx)
	if err == nil {
		var dir string
		if dir, err = jars(ctx, version); err == nil {
			return runtime{java, filepath.Join(dir, "*")}, nil
		}
	}
	return runtime{}, fmt.Errorf("%w: version %s: %w", ErrUnavailable, version, err)
}

func findJava(ctx context.Context) (string, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return "", errors.New("java is not installed")
	}
	out, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("java -version: %w", err)
	}
	_, v, _ := strings.Cut(string(out), `version "`)
	v, _, _ = strings.Cut(v, `"`)
	major, _, _ := strings.Cut(v, ".")
	if n, err := strconv.Atoi(major); err != nil || n < javaMin {
		return "", fmt.Errorf("java is %q, %d is needed", v, javaMin)
	}
	return java, nil
}

// jars returns the folder of a version's jars. Its name depends on their checksums.
func jars(ctx context.Context, version string) (string, error) {
	want, err := sums.ReadFile("jars/" + version + ".sha256")
	if err != nil {
		return "", fmt.Errorf("no list of jars for it: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	key := sha256.Sum256(want)
	dir := filepath.Join(cache, "tocsin", "kafka-"+version+"-"+hex.EncodeToString(key[:4]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "download-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	lib := filepath.Join(tmp, "lib")
	if err := download(ctx, tmp, lib, releases[version].artifacts); err != nil {
		return "", err
	}
	got, err := checksums(lib)
	if err != nil {
		return "", fmt.Errorf("check its jars: %w", err)
	}
	if name := firstDifference(string(want), string(got)); name != "" {
		return "", fmt.Errorf("its jars are not the pinned ones: %s differs", name)
	}
	// The rename makes a whole directory appear at once; losing the race to another process is as good.
	if err := os.Rename(lib, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return dir, nil
}

func download(ctx context.Context, project, lib string, artifacts []string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return errors.New("mvn is not installed")
	}
	pom := &strings.Builder{}
	pom.WriteString(`<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>` +
		`<groupId>tocsin</groupId><artifactId>realkafka</artifactId><version>1</version><dependencies>`)
	for _, a := range artifacts {
		f := strings.Split(a, ":")
		fmt.Fprintf(pom, `<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>`,
			f[0], f[1], f[2])
	}
	pom.WriteString(`</dependencies></project>`)
	if err := os.WriteFile(filepath.Join(project, "pom.xml"), []byte(pom.String()), 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, mvn, "-q", "-B", "--strict-checksums", mavenPlugin+":copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+lib)
	cmd.Dir = project
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch its jars: %w: %s", err, lastLine(out))
	}
	return nil
}

// checksums lists the files of a folder as sha256sum does.
func checksums(dir string) ([]byte, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%x  %s\n", h.Sum(nil), e.Name())
	}
	return out.Bytes(), nil
}

// firstDifference names the first jar that only one list has.
func firstDifference(want, got string) string {
	a, b := strings.Split(strings.TrimSpace(want), "\n"), strings.Split(strings.TrimSpace(got), "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) {
			return b[i]
		}
		if i >= len(b) || a[i] != b[i] {
			return a[i]
		}
	}
	return ""
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
