# Everything that CI or a developer runs. "make help" lists it.
GO       ?= go
FUZZTIME ?= 20s
BENCH    ?= groups
VERSION  ?=

# One way to compile, for what is run, tested, checked and released: Go compiles each package once for each,
# and without cgo a program needs nothing of its machine.
export CGO_ENABLED = 0
export GOFLAGS := $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath

.DEFAULT_GOAL := help
.PHONY: help build generate test test-short test-vm race lint bench demo examples fuzz docs release

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build ./headgate (needs only Go)
	$(GO) build -o headgate ./cmd/headgate

generate: ## compile the eBPF sources (clang 19), make the API from its specification; commit what it gives
	scripts/deps generate
	$(GO) generate ./...

test: ## all tests; as root, else those on real kernels are skipped
	scripts/deps test
	scripts/test ./...

test-short: ## tests that need neither root nor time
	scripts/test -short ./...

test-vm: ## functional tests on Debian's kernels, emulated (fq_codel, netem, SCTP), or those of VMTESTS
	scripts/deps vm
	scripts/test-vm $(VMTESTS)

race: ## the short tests of packages whose goroutines share state, under the race detector, or those of RACEPART
	scripts/deps race
	scripts/race $(RACEPART)

lint: ## formatting, go vet, staticcheck, the dashboard's types, shellcheck
	scripts/deps lint
	scripts/lint

bench: build ## a paper's experiment: make bench BENCH=groups
	scripts/deps bench
	./headgate bench $(BENCH)

demo: build ## the main job, live, in throwaway namespaces (./headgate demo --network: all parts, on switches)
	scripts/deps demo
	./headgate demo

examples: build ## check every configuration under examples/
	scripts/examples

fuzz: ## each fuzz target for FUZZTIME, or those of FUZZPART
	scripts/fuzz $(FUZZTIME) $(FUZZPART)

docs: ## write docs/commands.md from the commands
	$(GO) test ./cli -run TestCommandsDocument -update -count=1

release: ## static binaries, Debian packages, checksums, bills of materials: make release VERSION=1.2.3
	scripts/release $(VERSION)
