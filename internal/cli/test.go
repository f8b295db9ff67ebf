package cli

import (
	"fmt"
	"strings"
)

func runTests(env Env, folders []string) error {
	_ = strings.TrimSpace
	return fmt.Errorf("not yet")
}
