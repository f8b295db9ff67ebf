# Everything a contributor runs. Needs go, npm (for the embedded ClickHouse), make, git and bash; linters and the like
# are built from the versions and checksums pinned in .tools.mod and .tools.sum.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PKG ?= ./...
ARGS ?=
COUNT ?= 6
FUZZTIME ?= 1m

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/tocsin and bin/chlocal
	@mkdir -p bin
	go build -o bin/ ./cmd/tocsin ./cmd/chlocal

demo: build ## run everything on this machine with generated traffic; ARGS="--help" shows how to steer it
	@exec bin/tocsin demo $(ARGS)

test: ## run the tests; PKG=./internal/rule/... narrows them, ARGS="-run X" goes to go test
	@.ci/test $(PKG) $(ARGS)

test-kafka: ## run the tests of Kafka on Apache Kafka (needs java 17 and mvn); VERSION=3.9.1 or 2.8.2 runs an older one
	@KAFKA_VERSION=$(VERSION) .ci/kafka $(ARGS)

fuzz: ## fuzz all decoders and parsers, each for FUZZTIME; RUN=Prometheus narrows them
	@.ci/fuzz $(FUZZTIME) $(RUN)

lint: ## check formatting, vet, linters, modules, scripts and stray paths
	@.ci/lint

bench: ## run the benchmarks of PKG and compare them with the run before
	@.ci/bench $(PKG) $(COUNT)

senders: ## build the Collector, Prometheus and Alertmanager that tests and bench-ingest run; five minutes, once
	@.ci/senders

bench-ingest: build ## measure ingesting OTLP spans, with the floor beside it; ARGS="-workload live -collector bin/senders/collector"
	go build -o bin/ ./internal/benchingest
	@bin/benchingest $(ARGS)

bench-evidence: ## measure the evidence rule against its rivals, bin/evidence.html; ARGS=-quick has few seeds
	@go run ./internal/evidencebench/run $(ARGS)

promrules: ## build bin/promrules, Prometheus' rules engine and TSDB in one program, for bench-detect
	cd internal/tools/promrules && CGO_ENABLED=0 go build -mod=readonly -o ../../../bin/ .

bench-quiet: ## play quiet months to the whole detector by rules with a budget and count the pages; half an hour; ARGS="-seeds 4 -days 7"
	@go run ./internal/evidencebench/runwhole $(ARGS)

bench-detect: build promrules ## measure the detector's ticks beside Prometheus on the same series; ARGS="-n 20000 -runs 1"
	go build -o bin/ ./internal/benchdetect
	@bin/benchdetect $(ARGS)

chaos: build ## strike ingest with faults and count what is stored; ARGS="-seed 7 -broker real -faults 1000"
	go build -o bin/chaos ./internal/chaos/run
	@bin/chaos $(ARGS)

clean: ## remove what build, test and bench made in this checkout
	rm -rf bin

.PHONY: help build demo test test-kafka fuzz lint bench senders bench-ingest bench-evidence bench-quiet promrules bench-detect chaos clean
