# "make help" lists what there is.
.DEFAULT_GOAL := help
.PHONY: help results build demo test check lint test-quick test-race test-guest test-slow bench fuzz clean

FUZZTIME ?= 10s
# How long test-slow takes: deaths of the daemon, streaming, random nodes.
DEATHS ?= 100
STREAM ?= 10m
SEEDS ?= 5000
# Packages with tests that run in guests.
GUESTS = $(shell grep -rl --include='*_test.go' '^//go:build guest' . | xargs -n 1 dirname | sort -u)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## bin/bellows
	go build -o bin/bellows ./cmd/bellows

demo: build ## real programs share too little memory, under 11 minutes; installs nothing, and needs root for real containers
	./bin/bellows demo --svg bin/demo.svg --flex-svg bin/demo-flex.svg

test: ## everything, under 20 minutes; as root on Debian it installs gcc and QEMU if they are missing, and says so
	@internal/testrun/all

check: lint test-quick ## what to run before a commit: installs nothing

lint: ## gofmt, go vet and staticcheck
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "gofmt: not formatted:"; echo "$$unformatted"; exit 1; fi
	go vet -tags guest ./...
	go tool staticcheck -tags guest ./...

test-quick: ## the tests without the race detector and without guests
	go run ./internal/testrun -- -count=1 ./...

test-race: ## the tests with the race detector; needs gcc
	CGO_ENABLED=1 go run ./internal/testrun -- -race -count=1 ./...

test-guest: ## the tests that need other kernels, in QEMU; as root on Debian it installs QEMU if it is missing
	guest/setup
	go run ./internal/testrun -- -tags guest -count=1 -timeout 20m -p 2 -run '^TestGuest' $(GUESTS)

results: build ## papers' tables and figures again, and docs/results.md; some minutes
	./bin/bellows experiment run ... --out docs/results --summary-only
	./bin/bellows experiment report

test-slow: ## faults at length, as root: DEATHS (100) of the daemon, STREAM (10m) of streaming, SEEDS (5000) random nodes
	go test ./agent -count=1 -v -timeout 60m -run 'TestDaemonDies|TestStreaming' -deaths $(DEATHS) -stream $(STREAM)
	go test ./memory -count=1 -timeout 60m -run TestRandom -seeds $(SEEDS)

bench: ## benchmarks: timeline, engine at 100 to 10,000 nodes, the YARN-ME authors' workload
	go test -run '^$$' -bench . -benchmem ./...

fuzz: ## every fuzz target for FUZZTIME (10s)
	internal/testrun/fuzz $(FUZZTIME)

clean: ## remove bin/ and what was fetched for guests
	rm -rf bin .cache
