// Chlocal is ClickHouse for one machine: the engine as a library, behind the HTTP interface that clickhouse-go speaks.
// It serves a laptop, the demo and tests; production uses a ClickHouse server. It listens on loopback only and stops
// when its standard input, a pipe held by whoever started it, closes.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	opts, err := parseFlags(os.Args[1:], os.Stderr)
	logger := opts.logger(os.Stderr)
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(0)
		}
		logger.Error(err.Error())
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once; the data is safe
	if err := run(ctx, opts, os.Stdin, os.Stdout, logger); err != nil {
		logger.Error(err.Error())
		os.Exit(1)
	}
	os.Exit(0) // not by return: the library's threads may still run
}
