//go:build !unix

package outbox

import "os"

// lockFile does nothing where there is no flock.
func lockFile(*os.File) error { return nil }
