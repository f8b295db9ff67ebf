package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// member is one `tocsin run`, over all its lives.
type member struct {
	number int
	dir    string
	binary string

	mu     sync.Mutex
	proc   *process
	starts int
}

func (m *member) name() string    { return fmt.Sprint("member ", m.number) }
func (m *member) logFile() string { return filepath.Join(m.dir, "log") }

// clientID is how the member calls itself to brokers, by which the proxies know it.
func clientID(number int) string { return fmt.Sprint("chaos-", number) }

// memberOf is the number in a client id, or -1.
func memberOf(id string) int {
	n := -1
	_, _ = fmt.Sscanf(id, "chaos-%d", &n)
	return n
}

// configText is a daemon that notices everything soon: sessions, retries and lingering take seconds at most.
const configText = `http: {listen: "127.0.0.1:0"}
kafka:
  brokers: [%s]
  client_id: %s
  session_timeout: 3s
  rebalance_timeout: 6s
  request_timeout: 5s
  commit_timeout: 2s
  metadata_ttl: 1s
clickhouse: {addresses: [%q], request_timeout: 8s}
files: {pipelines: pipelines, routes: routes.yaml}
ingest:
  start: beginning
  min_linger: 100ms
  max_linger: 1s
  fetch_wait: 250ms
  heartbeat: 1s
  insert_timeout: %s
  retry_min: 50ms
  retry_max: 1s
  anew_after: 4s
  settle: %s
detect: {poll: 500ms, hold: 1m}
respond: {data_dir: outbox}
`

const routesText = `route: {receiver: nobody}
receivers: [{name: nobody}]
`

// newMember configures a daemon. A hasty one gives up on inserts, and rests where a lock was lost, for less than inserts are
// held back for: then only reservations stand between a late insert and counting twice.
func newMember(number int, dir, binary string, brokers []string, engine string, hasty bool) (*member, error) {
	insertTimeout, settle := "8s", "14s"
	if hasty {
		insertTimeout, settle = "2s", "2s"
	}
	m := &member{number: number, dir: filepath.Join(dir, fmt.Sprint("member-", number)), binary: binary}
	quoted := make([]string, len(brokers))
	for i, b := range brokers {
		quoted[i] = fmt.Sprintf("%q", b)
	}
	files := map[string]string{
		"tocsin.yaml": fmt.Sprintf(configText, strings.Join(quoted, ", "), clientID(number), engine, insertTimeout, settle),
		"routes.yaml": routesText,
	}
	for name, text := range pipelineTexts {
		files["pipelines/"+name+".yaml"] = text
	}
	for name, text := range files {
		name = filepath.Join(m.dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return nil, fmt.Errorf("configure %s: %w", m.name(), err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("configure %s: %w", m.name(), err)
		}
	}
	return m, nil
}

// start starts it unless it runs.
func (m *member) start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc != nil && m.proc.running() {
		return nil
	}
	p, err := startProcess(exec.Command(m.binary, "run", "--config.file", filepath.Join(m.dir, "tocsin.yaml"), "--exit-with-parent"), m.logFile(), nil)
	if err != nil {
		return err
	}
	m.proc = p
	m.starts++
	return nil
}

func (m *member) process() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proc
}

func (m *member) running() bool {
	p := m.process()
	return p != nil && p.running()
}

func (m *member) kill() {
	if p := m.process(); p != nil {
		p.kill()
	}
}

func (m *member) stop() {
	if p := m.process(); p != nil {
		p.stop()
	}
}

func (m *member) cont() {
	if p := m.process(); p != nil {
		p.cont()
	}
}

func (m *member) end() {
	if p := m.process(); p != nil {
		_ = p.end(15 * time.Second) // one that hangs is killed, which is a fault like others
	}
}
