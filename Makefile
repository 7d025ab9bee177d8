# "make help" lists the targets.
.DEFAULT_GOAL := help
.PHONY: help build lab check test test-studies test-all lint test-race test-guest test-faults test-upgrade test-soak demo demand demand-cores results results-check bench bench-machine bench-disks bench-pools bench-pairs attack clients fuzz spark spark-long release clean

# What test-faults runs: deaths of the daemon, time of streaming, random nodes, deaths right before a change of a file, cuts of power,
# shifts in which the daemon dies.
DEATHS ?= 30
POOL_DEATHS ?= 50
STREAM ?= 2m
SEEDS ?= 1000
KILLS ?= 60
CUTS ?= 60
SHIFTS ?= 100
# How many jobs test-soak runs on this machine, and in 72 hours of simulated time.
LIFE ?= 20000
SOAK ?= 20000
FUZZTIME ?= 10s
# How many pairs bench-pairs runs for each policy.
PAIRS ?= 20
# Where demand and demand-cores keep their runs: an interrupted comparison goes on there.
DEMAND ?= bellows-demand
CORES ?= bellows-cores
# Packages with tests that run in guests.
GUESTS = $(shell grep -rl --include='*_test.go' '^//go:build guest' . | xargs -n 1 dirname | sort -u)
# Packages whose benchmarks need control groups.
MACHINE = node/agent node/cgroup node/keeper node/netcount
TESTRUN = go run github.com/bellows-rm/bellows/internal/testrun
# What programs say of their version. COMMIT and DATE can be given where there is no clone; both may be unknown.
COMMIT ?= $(shell git describe --always --abbrev=40 --dirty --exclude '*' 2>/dev/null)
DATE ?= $(shell TZ=UTC0 git show -s --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd HEAD 2>/dev/null)
STAMP = $(foreach v,version=$(shell cat VERSION) commit=$(COMMIT) date=$(DATE),-X github.com/bellows-rm/bellows/door/cli/command.$v)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## bin/bellows: one static file
	CGO_ENABLED=0 go build -trimpath -ldflags "$(STAMP)" -o bin/ ./cmd/bellows

lab: ## bin/bellows-lab, the studies: one static file
	cd studies && CGO_ENABLED=0 go build -trimpath -ldflags "$(STAMP)" -o ../bin/ ./bellows-lab

# Many tests wait most of the time: one package more than there are processors keeps these busy.
test: check ## run this before a commit, under 5 minutes once built: gofmt, vet and all tests that are not long; installs nothing
	$(TESTRUN) -- -short -count=1 -timeout=15m -p=$$(($$(nproc) + 1)) ./...

test-studies: ## the module of the studies, under 6 minutes: lint, all tests as test-race runs them, and the commands with bellows-lab in documents
	cd studies && export GOGC=400 && go vet ./... && $$(go -C .. tool -n staticcheck) ./...
	internal/testrun/race studies
	$(TESTRUN) -- -count=1 -run='TestCommands/(profiles|output|measured)' ./docs -lab

test-all: test lint test-studies test-race test-guest test-faults test-upgrade test-soak results-check ## everything that can fail, one after the other, about an hour, as root

# What vets and lints uses much memory for a short time: with GOGC=400 it takes two thirds of the processor time, and at most 2 GB.
check:
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "gofmt: not formatted:"; echo "$$unformatted"; exit 1; fi
	GOGC=400 go vet -tags guest,attack,spark ./...

lint: check ## gofmt, go vet and staticcheck, 9 minutes of processor time the first time
	GOGC=400 go tool staticcheck -tags guest,attack,spark ./...

test-race: ## long tests too, under 13 minutes: with the race detector where there are goroutines; as root on Debian it installs gcc if it is missing
	internal/testrun/race

test-guest: ## the tests that need other kernels, in QEMU, under 20 minutes; as root on Debian it installs QEMU if it is missing
	internal/guest/setup
	$(TESTRUN) -- -tags=guest -count=1 -timeout=29m -p=1 -run='^TestGuest' $(GUESTS)

test-faults: ## faults at length, as root, under 10 minutes: DEATHS (30) of the daemon, POOL_DEATHS (50) of it, of executors, of workers of Python and of applications, KILLS (60) at changes of files, CUTS (60) of power, deaths in SHIFTS (100), STREAM (2m) of streaming, SEEDS (1000) random nodes
	$(TESTRUN) -- -count=1 -timeout=60m -run='TestDaemonDies|TestStreaming' ./node/agent -deaths=$(DEATHS) -stream=$(STREAM) \
		-- -count=1 -timeout=60m -run='^(TestDeaths|TestDriversDie)$$' ./pool/fleet -deaths=$(POOL_DEATHS) \
		-- -count=1 -timeout=60m -run='^TestPythonOnBadDays$$' ./executor -deaths=$(POOL_DEATHS) \
		-- -count=1 -timeout=60m -run='^TestKilled$$' ./cmd/bellows/internal/mapping -kills=$(POOL_DEATHS) \
		-- -count=1 -timeout=60m -run=TestRandom ./core/memory -seeds=$(SEEDS) \
		-- -count=1 -timeout=60m -run='TestKillAtEveryWrite|TestPowerLoss|TestDaemonDiesInShifts' ./live -kills=$(KILLS) -cuts=$(CUTS) -shifts=$(SHIFTS)

test-upgrade: ## takes over the running jobs of a daemon of the baseline in CHANGELOG.md, as root, under 4 minutes: and two daemons take turns while pools run tasks; builds the program of the baseline from the history of the repository
	$(TESTRUN) -- -count=1 -timeout=15m -run='^(TestUpgradeFromPrograms|TestPoolsOfTwoPrograms)$$' ./cmd/bellows -upgrade-from=baseline

test-soak: ## SOAK (20000) jobs of every kind through one daemon, as root, then LIFE (20000) in 72 hours of simulated time, under 12 minutes: no memory, process or file of them may stay
	$(TESTRUN) -- -count=1 -timeout=30m -run='^TestSoak$$' ./cmd/bellows -soak=$(SOAK) \
		-- -count=1 -timeout=3h -run='^TestLongLife$$' ./live -life-jobs=$(LIFE)

spark: ## Spark from PyPI on warm executors, as root, under 4 minutes; needs Java 17, python3 and pip, and the first time 450 MB
	$(TESTRUN) -- -tags=spark -count=1 -timeout=15m -run='^Test(Spark|Session)' ./connector/spark

spark-long: ## Spark at length, as root, under an hour: the 22 queries of TPC-H with seven settings, eight applications on two executors, 1,300 turns on one JVM, streams, the shells of Spark, pandas, a notebook, Spark Connect, mistakes of users, POOL_DEATHS (50) of JVMs, launchers, daemons and drivers each, flex executors, and two other versions, which are 750 MB once
	$(TESTRUN) -- -tags=spark -count=1 -timeout=90m -run='^Test(Spark|LongSpark|Session)' ./connector/spark -long -deaths=$(POOL_DEATHS)

demo: build ## real programs share too little memory, under 5 minutes; installs nothing, needs root for containers
	./bin/bellows demo

demand: lab ## real programs on a disk of a stated speed under static boxes, tetris and prophet, an hour and three quarters on a quiet machine, as root; results in DEMAND (bellows-demand)
	./bin/bellows-lab demand --out $(DEMAND)

demand-cores: lab ## real programs that use two cores, one or hardly any in turn, under static boxes, prophet and ecs, 70 minutes on a quiet machine, as root; results in CORES (bellows-cores)
	./bin/bellows-lab demand --mix cores --out $(CORES)

results: lab ## reproduce the papers' tables and figures with as many runs as are stored, and write docs/results.md and a page for each; half an hour
	./bin/bellows-lab experiment run ... --again --out docs/results --summary-only --data ../shared/data
	./bin/bellows-lab experiment report

results-check: ## compare stored results with new ones, byte by byte: experiments of at most 15 s as a whole, the first traces of longer ones; under 3 minutes
	cd studies && $(TESTRUN) -- -count=1 -timeout=15m -run='TestStoredResults|TestVerdicts|TestReport' ./experiments -results

bench: ## benchmarks of processor time: engine at 100 to 10,000 nodes, simulator, profiles and more; under 10 minutes
	go test -run '^$$' -bench . -benchmem -skip '^Benchmark(PressedDisk|Readers|ShortJobs|BareJobs|Restart|Submission|Sharing|Acquisition|Reassignment)$$' \
		$$(go list ./... | grep -vxE "$$(go list -m)/($$(echo core/engine $(MACHINE) | tr ' ' '|'))")
	cd studies && go test -run '^$$' -bench Fig6c -benchmem ./experiments
	go test -run '^$$' -bench '^BenchmarkAhead$$' -benchmem ./core/engine
	go test -run '^$$' -bench '^BenchmarkStep$$' -benchmem -benchtime 200ms ./core/engine

bench-machine: ## benchmarks of containers, control groups and a daemon with many clients, as root on a quiet machine, under 20 minutes
	go test -run '^$$' -bench . -benchmem $(addprefix ./,$(MACHINE))
	go test -run '^$$' -bench '^Benchmark(Readers|ShortJobs|BareJobs|Restart)$$' -benchtime 1x ./cmd/bellows
	go test -run '^$$' -bench '^BenchmarkSubmission$$' -benchtime 300x ./cmd/bellows

bench-disks: ## benchmarks of programs that share a disk or the swap space, as root on a quiet machine, about an hour
	go test -run '^$$' -bench '^BenchmarkPressedDisk$$' -timeout 1h ./cmd/bellows
	cd studies && go test -run '^$$' -bench '^BenchmarkShortJobsBesideSuspended$$' -timeout 1h -v ./demo

bench-pools: ## benchmarks of warm executors, real processes, as root on a quiet machine, about an hour
	go test -run '^$$' -bench '^BenchmarkReassignment$$' -benchtime 2000x ./executor # with pandas, if the python3 of PATH has it
	go test -run '^$$' -bench '^BenchmarkAcquisition$$' -benchtime 10x ./executor
	go test -run '^$$' -bench '^BenchmarkSharing$$' -benchtime 5m -timeout 2h ./executor

bench-pairs: ## processor time of decisions compared with revision OLD, in PAIRS (20) of runs that share one processor; under 10 minutes
	internal/testrun/pairs $(or $(OLD),$(error OLD must be a revision to compare with)) $(PAIRS)

attack: ## requests of every kind that Schemathesis makes of the document of the API, to a daemon with users of each scope, as root, some 2 minutes; needs python3, and pip the first time
	internal/attack/run

clients: ## clients in Python and Go, generated from the document of the API, use a daemon, as root, some 10 seconds; needs python3, and the first time pip, the proxy of modules and a minute
	internal/clients/run

fuzz: ## every fuzz target for FUZZTIME (10s), and every property on new random cases
	internal/testrun/fuzz $(FUZZTIME)

release: ## dist/: archives, Debian packages and wheels for amd64 and arm64, of a commit; 5 minutes of processor time the first time
	go run ./internal/release -commit "$(COMMIT)" -date "$(DATE)" -out dist

clean: ## remove bin/, dist/ and what was fetched for guests
	rm -rf bin dist .cache
