# Hookonce: `make` lists the targets. Go and make are all it needs to begin.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PKG     ?= ./...
TOOLS   := .tools
# Gin's msgpack support, which nothing here uses, takes an eighth of a cold build.
TAGS    := -tags nomsgpack
# The revision goes into the programs where git can tell it.
STAMP   := $(if $(shell git rev-parse HEAD 2>/dev/null),auto,false)

GOFUMPT     := $(TOOLS)/gofumpt-v0.12.0
STATICCHECK := $(TOOLS)/staticcheck-v0.8.2

.DEFAULT_GOAL := help
.PHONY: help build deps test lint fmt bench fuzz soak clean FORCE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## static programs in bin/: hookonce, receiver, consumer
	CGO_ENABLED=0 go build $(TAGS) -trimpath -buildvcs=$(STAMP) -ldflags "-s -w -X github.com/hookonce/hookonce/internal/app.version=$(VERSION)" \
		-o bin/ ./cmd/hookonce ./cmd/receiver ./cmd/consumer

deps: ## install what the tests need and this machine lacks (apt, as root)
	@sh test/deps.sh

# Vet is lint's; a third package runs while two wait for their servers.
test: $(TOOLS)/harness $(TOOLS)/gotest ## every test with -race, on real servers; PKG=./receiver/... for some
	CGO_ENABLED=0 go build $(TAGS) -buildvcs=false -o $(TOOLS)/programs/ ./cmd/...
	HOOKONCE_TEST_PROGRAMS=$(abspath $(TOOLS)/programs) CGO_ENABLED=1 $(TOOLS)/harness $(TOOLS)/gotest $(TAGS) -race -vet=off -p 3 -timeout 10m $(PKG)

lint: $(GOFUMPT) $(STATICCHECK) ## gofumpt, go vet, staticcheck
	@unformatted=$$($(GOFUMPT) -l .) || exit 1; \
	if [ -n "$$unformatted" ]; then echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi
	CGO_ENABLED=0 go vet $(TAGS) ./...
	CGO_ENABLED=0 $(STATICCHECK) $(TAGS) ./...

fmt: $(GOFUMPT) ## format with gofumpt
	$(GOFUMPT) -w .

bench: deps $(TOOLS)/harness ## two tables of what a delivery costs (ROUNDS, SECONDS, ROWS=regexp), then go test -bench
	@go test $(TAGS) -c -o $(TOOLS)/load ./test/load
	@$(TOOLS)/load -table -rounds $${ROUNDS:-5} -seconds $${SECONDS:-3} -rows "$${ROWS:-}"
	@$(TOOLS)/load -consume -rounds $${ROUNDS:-5} -events 60000 -rows "$${ROWS:-}"
	@$(TOOLS)/harness go test $(TAGS) -run '^$$' -bench . -benchmem ./receiver ./publisher ./consumer ./internal/batch ./internal/store/...

fuzz: ## every fuzz target for FUZZTIME (default 30s) each
	@sh test/fuzz.sh $(PKG)

soak: fuzz $(TOOLS)/harness $(TOOLS)/gotest ## what takes long: fuzzing, the guarantees over and over (SOAK times, default 10), draining a large outbox (EVENTS)
	HOOKONCE_TEST_FLOW=60s CGO_ENABLED=1 $(TOOLS)/harness $(TOOLS)/gotest $(TAGS) -race -timeout 0 -count $${SOAK:-10} ./test/guarantee/... ./test/e2e/...
	HOOKONCE_TEST_DEAD=250000 $(TOOLS)/harness $(TOOLS)/gotest $(TAGS) -timeout 0 -run VeryManyLetters ./internal/admin
	@go test $(TAGS) -c -o $(TOOLS)/load ./test/load
	@$(TOOLS)/load -drain -events $${EVENTS:-1000000}

clean: ## remove what the targets above made
	rm -rf bin $(TOOLS) coverage*

# Built as the tests are, with -race: on a cold cache nothing compiles twice.
$(TOOLS)/harness $(TOOLS)/gotest: FORCE | deps
	@CGO_ENABLED=1 go build -race -buildvcs=false -o $@ ./internal/testenv/$(notdir $@)

# Pinned, and in the checkout: nobody's own tools are touched.
$(GOFUMPT): ; $(call install,mvdan.cc/gofumpt)
$(STATICCHECK): ; $(call install,honnef.co/go/tools/cmd/staticcheck)

# The version is what follows the first "-" of the file's name.
define install
@mkdir -p $(TOOLS)
GOFLAGS= GOBIN=$(abspath $(TOOLS)) go install $(1)@$(lastword $(subst -v, v,$(notdir $@)))
@mv $(TOOLS)/$(notdir $(1)) $@
endef
