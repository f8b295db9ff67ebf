package chaos

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	Child()
	goleak.VerifyTestMain(m)
}
