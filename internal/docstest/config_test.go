package docstest

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tocsin-project/tocsin/internal/app"
)

// What a key of the configuration means where the source has no comment on it.
var configMeaning = map[string]string{
	"http.listen":                "address of the console, the API and `/metrics`",
	"kafka.brokers":              "required: host:port of some brokers, from which the others are found",
	"kafka.client_id":            "how Tocsin calls itself",
	"kafka.tls":                  "present, TLS is used; all keys below are optional",
	"kafka.sasl":                 "present, Tocsin logs in; the password is never in this file",
	"kafka.group":                "consumer group of the ingest loop",
	"kafka.commands_topic":       "where people's commands go; made if it is missing",
	"kafka.outbox_topic":         "compacted copy of the outbox; made if it is missing",
	"kafka.session_timeout":      "how soon a member that is gone is missed",
	"kafka.rebalance_timeout":    "how long members have to rejoin",
	"kafka.dial_timeout":         "for one connection",
	"kafka.request_timeout":      "for one request",
	"clickhouse.database":        "made if it is missing",
	"kafka.sasl.username":        "",
	"kafka.sasl.password_file":   "a file that holds the password, read for each connection",
	"kafka.sasl.password_env":    "an environment variable that holds it",
	"clickhouse.username":        "",
	"clickhouse.password":        "better `password_file`",
	"clickhouse.password_file":   "a file that holds the password",
	"clickhouse.tls":             "present, TLS is used; all keys below are optional",
	"clickhouse.dial_timeout":    "for one connection",
	"clickhouse.connections_max": "size of the pool",
	"files.pipelines":            "folder of what is read and what it means",
	"files.rules":                "folder of rules",
	"files.routes":               "who hears of what",
	"files.catalogue":            "what exists and what depends on what",
	"ingest.min_linger":          "see `inserts_per_second`",
	"ingest.max_linger":          "see `inserts_per_second`",
	"ingest.max_batch":           "memory of one batch",
	"ingest.max_memory":          "memory of all batches together",
	"ingest.fetch_wait":          "how long a fetch waits for records",
	"ingest.idle_grace":          "how far behind the clock the watermark of a caught-up partition is",
	"ingest.retry_min":           "first pause between tries",
	"ingest.retry_max":           "longest pause between tries",
	"respond.poll":               "how often the incident log is looked at",
	"heartbeat.url":              "posted to while Tocsin is healthy; better `url_file`",
	"heartbeat.url_file":         "a file that holds the address",
	"external_labels":            "name this installation in templates and messages",
	"ca_file":                    "authorities to trust instead of the system's",
	"cert_file":                  "our certificate, with `key_file`",
	"key_file":                   "its key",
	"server_name":                "expected instead of the address's name",
	"insecure_skip_verify":       "trust any certificate: for trying out only",
	"clickhouse.tls.server_name": "expected instead of the address's name",
}

func TestReferenceOfConfigurationIsWhatTheCodeSays(t *testing.T) {
	conf, err := app.ParseConfig("", []byte("kafka: {brokers: ['x:1']}"))
	if err != nil {
		t.Fatal(err)
	}
	conf.Kafka.Brokers = nil // the one key that has no default
	said := map[string]map[string]string{}
	for _, dir := range []string{"app", "clickhouse", "door", "ingest", "kafka", "respond", "respond/selfpage"} {
		for typ, fields := range comments(t, filepath.Join(root(t), "internal", dir)) {
			said[dir+"."+typ] = fields
		}
	}
	var b strings.Builder
	v := reflect.ValueOf(conf).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if key == "" || key == "-" {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n| key | default | meaning |\n|---|---|---|\n", key)
		if f.Type.Kind() == reflect.Struct {
			configRows(t, &b, said, key, "", v.Field(i))
		} else {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, shown(v.Field(i), false), configMeaning[key])
		}
	}
	generated(t, "docs/configuration.md", "keys", b.String()+"\n")
}

// configRows writes a row for each key of a section, those of nested mappings with a dot.
func configRows(t *testing.T, b *strings.Builder, said map[string]map[string]string, section, prefix string, v reflect.Value) {
	t.Helper()
	typ := v.Type()
	pkg := strings.TrimPrefix(typ.PkgPath(), "github.com/tocsin-project/tocsin/internal/")
	for i := range typ.NumField() {
		f := typ.Field(i)
		key, flags, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case strings.Contains(flags, "inline"):
			configRows(t, b, said, section, prefix, v.Field(i))
			continue
		case key == "" || key == "-" || !f.IsExported():
			continue
		}
		text, known := inKeys(typ, f.Name, said[pkg+"."+typ.Name()][f.Name]), false
		if text == "" {
			if text, known = configMeaning[section+"."+prefix+key]; !known {
				if text, known = configMeaning[key]; !known {
					t.Errorf("nothing says what %s.%s%s means: comment it in internal/%s, or say it here", section, prefix, key, pkg)
				}
			}
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s |\n", prefix, key, shown(v.Field(i), false), strings.ReplaceAll(text, "|", `\|`))
		if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
			configRows(t, b, said, section, prefix+key+".", reflect.New(f.Type.Elem()).Elem())
		}
	}
}

// inKeys turns the names of fields in a comment into the keys that a reader of the page knows: the field's own name at the
// beginning, and names of other fields that are no plain words.
func inKeys(typ reflect.Type, own, text string) string {
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		key, _, _ := strings.Cut(typ.Field(i).Tag.Get("yaml"), ",")
		if key == "" || key == "-" {
			continue
		}
		if name == own {
			if rest, ok := strings.CutPrefix(text, name+" "); ok {
				text = "`" + key + "` " + rest
			}
		}
		if strings.Contains(key, "_") {
			text = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(text, "`"+key+"`")
		}
	}
	return text
}
