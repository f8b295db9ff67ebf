// Package deploy embeds what the demo needs of this folder.
package deploy

import (
	"embed"
	"io/fs"
)

//go:embed demo
var demo embed.FS

// Demo holds catalogue.yaml, the world and scenarios/*.yaml of the demo.
var Demo = func() fs.FS {
	sub, err := fs.Sub(demo, "demo")
	if err != nil {
		panic(err) // the name is valid: it is the one embedded above
	}
	return sub
}()
