package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
)

type options struct {
	lib, data, listen, database, reader string
	memoryMax, bodyMax                  int64
	threads, queriesMax                 int
	logJSON, debug                      bool
}

func parseFlags(args []string, usage io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("chlocal", flag.ContinueOnError)
	f.SetOutput(usage)
	f.StringVar(&o.lib, "lib", "", "path of libchdb.so; without it the pinned version is installed into the user's cache")
	f.StringVar(&o.data, "data", "", "data folder, made if missing, for one chlocal at a time (required)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8123", "loopback address to listen on; port 0 takes a free one")
	f.StringVar(&o.database, "database", "tocsin", "database made at start and used by requests that name none")
	f.StringVar(&o.reader, "reader", "reader", "the user who may only read")
	f.Int64Var(&o.memoryMax, "memory-max-bytes", 4<<30, "memory that the engine may use")
	f.Int64Var(&o.bodyMax, "body-max-bytes", 1<<30, "size of a request's body, uncompressed")
	f.IntVar(&o.threads, "threads", 2, "threads of a query and size of the background pools")
	f.IntVar(&o.queriesMax, "queries-max", 64, "queries running at once; more wait")
	f.BoolVar(&o.logJSON, "log-json", false, "log as JSON lines")
	f.BoolVar(&o.debug, "debug", false, "log failed queries")
	f.Usage = func() {
		fmt.Fprintln(usage, "Usage: chlocal -data FOLDER [flags]\n\nServes ClickHouse's HTTP interface on this machine. Stops on SIGTERM, or when standard input is a pipe and closes.")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.data == "" {
		return o, fmt.Errorf("-data FOLDER is required")
	}
	if o.memoryMax <= 0 || o.bodyMax <= 0 || o.threads <= 0 || o.queriesMax <= 0 {
		return o, fmt.Errorf("limits must be above zero")
	}
	if o.database == "" || o.database == "default" || o.database == "system" {
		return o, fmt.Errorf("-database %q: it needs a database of its own (in default, table names are files of this machine)", o.database)
	}
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return o, fmt.Errorf("-listen: %w", err)
	}
	if addr, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !addr.IsLoopback()) {
		return o, fmt.Errorf("-listen %s: only loopback addresses, such as 127.0.0.1:8123: there are no passwords", o.listen)
	}
	return o, nil
}

func (o options) logger(w io.Writer) *slog.Logger {
	h := &slog.HandlerOptions{Level: slog.LevelInfo}
	if o.debug {
		h.Level = slog.LevelDebug
	}
	if o.logJSON {
		return slog.New(slog.NewJSONHandler(w, h))
	}
	return slog.New(slog.NewTextHandler(w, h))
}
