package engine

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed config.xml.tmpl
var configText string

//go:embed users.xml.tmpl
var usersText string

var (
	configTemplate = template.Must(template.New("config.xml").Parse(configText))
	usersTemplate  = template.Must(template.New("users.xml").Parse(usersText))
)

// writeConfig puts the engine's two configuration files into the data folder, new at every start, and returns the
// path of the first. They are this program's, not the user's: edits are overwritten.
func writeConfig(dir string, opts Options) (string, error) {
	users := filepath.Join(dir, "chlocal.users.xml")
	config := filepath.Join(dir, "chlocal.config.xml")
	values := struct {
		Options
		UsersFile     string
		QueryMaxBytes int64
	}{opts, users, opts.MemoryMaxBytes * 3 / 4}
	for path, t := range map[string]*template.Template{users: usersTemplate, config: configTemplate} {
		var b bytes.Buffer
		if err := t.Execute(&b, values); err != nil {
			return "", fmt.Errorf("engine configuration: %w", err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o640); err != nil {
			return "", fmt.Errorf("engine configuration: %w", err)
		}
	}
	return config, nil
}
