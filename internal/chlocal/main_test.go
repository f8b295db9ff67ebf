package chlocal_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tocsin-project/tocsin/internal/chlocal"
)

// parentEnv makes the test binary the program that starts an engine, to be killed by a test.
const parentEnv = "TOCSIN_TEST_CHLOCAL_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		parent(dir)
	}
	goleak.VerifyTestMain(m)
}

func parent(dir string) {
	s, err := chlocal.Start(context.Background(), chlocal.Options{Binary: os.Getenv("TOCSIN_TEST_BINARY"), LibPath: os.Getenv("TOCSIN_TEST_LIB"), DataDir: dir, Logger: slog.Default()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.Pid(), s.Addr())
	bufio.NewReader(os.Stdin).ReadByte() // held open by the test
	os.Exit(0)
}
