# Everything that a person runs. What needs logic is in the commands that are started here; what is
# tested, and how, is the table in integration/suites. Tests and demos need root: they make network namespaces.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
GO          ?= go
# Compilers leave out what only debuggers read and collect less garbage, which saves a quarter of the time. One
# setting for programs and tests: what they share is compiled once.
GOFLAGS     ?= -buildvcs=false -trimpath -gcflags=all=-dwarf=false '-toolexec="$(CURDIR)/integration/suites/toolexec"'
export GOFLAGS
export CGO_ENABLED := 0

# Not go run, which would end without the runner on SIGTERM.
SUITES_RUN = mkdir -p bin && $(GO) build -o bin/run-suites ./integration/suites/run && exec bin/run-suites
PREPARE    = $(GO) run ./integration/suites/run
# What deploy/image/build reads, from the command line of make or the environment.
IMAGE_SETTINGS = $(foreach v,BUILDER ARCH IMAGE VERSION REVISION GO_IMAGE BASE_IMAGE MIRROR ROOTFS_FLAGS BUILD_FLAGS,$(if $($(v)),$(v)="$($(v))"))
HOST_ARCH  = $(shell $(GO) env GOARCH)

.PHONY: help docs
help: ## print this list
	@echo "gridproxy: Service traffic that stays inside its NodeUnit"
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {print "\n" substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Run
.PHONY: demo cluster-demo
demo: ## six nodes in two units on this machine: who answers whom; KEEP=DIR: keep their manifests there, to ask about them
	@$(PREPARE) -install iptables
	@$(GO) run ./integration/demo $(if $(KEEP),-keep '$(KEEP)')

cluster-demo: ## a real cluster of four machines on this one: the chart, the Grids of the sample, who answers whom
	@$(PREPARE) -install iptables,machines
	@$(GO) run ./integration/demo -machines

##@ Test
.PHONY: test test-all test-rest test-steady fuzz planted test-list test-order
test: ## the core tier, or the suites of SUITES=name,name (patterns such as ipvs-* too); REQUIRE=all: a skip is a failure
	@$(SUITES_RUN) $(if $(SUITES),-suites '$(SUITES)',-tier core)

test-all: ## the core and the extended tier
	@$(SUITES_RUN) -tier all

test-rest: ## the extended tier in the order of CI, then the fuzz targets
	@$(SUITES_RUN) -rest

fuzz: ## each fuzz target for FUZZTIME (30s)
	@$(SUITES_RUN) -tier fuzz

test-steady: ## the core tier N (10) times, beside BURDEN (0) busy processes: which tests are not steady; SUITES: some suites
	@SUITES='$(SUITES)' BURDEN='$(BURDEN)' integration/suites/steady '$(or $(N),10)'

planted: ## before a release: make test refuses each fault of integration/suites/planted; PLANTED=NAME: one of them, SUITES: some suites
	@SUITES='$(SUITES)' PLANTED='$(PLANTED)' integration/suites/planted/check

test-list: ## the suites, what each one proves, and how long it usually takes; make NAME runs one
	@$(SUITES_RUN) -list

test-order: ## the order in which CI would run the extended suites now
	@$(SUITES_RUN) -order

##@ Look
.PHONY: bench bench-grids bench-ipvs bench-dns
bench: ## gridproxy against kube-proxy 1.37.2 on one API server: ratios
	@$(PREPARE) -install iptables
	$(GO) run ./integration/bench
	$(GO) run ./integration/bench -nodes

bench-grids: ## grid-controller against a plain writer of the same children: 100 Grids in 100 units; SCALE=full: in 1,000
	$(GO) run ./integration/bench -grids $(if $(filter full,$(SCALE)),-units 1000 -limit 3h)

bench-ipvs: ## both modes of gridproxy against kube-proxy 1.37.2 in IPVS mode, in a virtual machine: ratios
	@$(PREPARE) -install iptables,qemu
	@mkdir -p bin/programs && $(GO) build -ldflags "-s -w" -o bin/programs/ ./cmd/gridproxy ./cmd/grid-dns ./integration/bench ./integration/env/vm
	@tools=$$($(PREPARE) -ensure control-plane); \
		GRIDPROXY_PROGRAMS=$(CURDIR)/bin/programs GRIDPROXY_KUBE_PROXY=$$tools/kube-proxy bin/programs/vm -kernel 6.1 bin/programs/bench -ipvs

bench-dns: ## grid-dns against CoreDNS as the DNS of a cluster and as the cache of a node, with 1,000 and 10,000 Services: ratios
	@$(PREPARE) -install iptables,dnsperf
	$(GO) run ./integration/bench -dns
	$(GO) test ./integration/node -run '^$$' -bench BesideNodeLocal -benchtime 1x

##@ Build
.PHONY: build
build: ## bin/gridproxy, bin/grid-controller, bin/grid-dns and bin/kubectl-grid; VERSION=1.0: the version they report, else git's
	@mkdir -p bin
	$(GO) build -buildvcs=auto -ldflags "-s -w $(if $(VERSION),-X gridproxy/cmd/command.version=$(VERSION))" \
		-o bin/ ./cmd/gridproxy ./cmd/grid-controller ./cmd/grid-dns ./cmd/kubectl-grid

.PHONY: generate
generate: ## deploy/crds, the deep copies, the plain manifests and the page about the chart, from their sources
	$(GO) tool controller-gen object crd paths=./controller/api/... output:crd:dir=deploy/crds
	$(GO) run ./integration/manifests

.PHONY: tools
tools: ## etcd, Kubernetes 1.37.2, containerd, SuperEdge's controller and helm for the tests, kept in the user's cache folder
	@$(PREPARE) -install machines -ensure all

##@ Release
.PHONY: image image-base rootfs
image: ## the container image gridproxy:dev, with docker, podman or buildah; ARCH=arm64 or arm: another machine's, all: a manifest list
	@$(IMAGE_SETTINGS) deploy/image/build

image-base: ## a GO_IMAGE for make image from Debian's packages and this machine's Go, where no registry is reachable
	@$(IMAGE_SETTINGS) deploy/image/build base

rootfs: ## the image's root file system as a tar for ARCH (this machine's), without any container tool
	@mkdir -p bin
	@$(GO) run ./deploy/image/rootfs $(ROOTFS_FLAGS) $(or $(ARCH),$(HOST_ARCH)) bin/rootfs-$(or $(ARCH),$(HOST_ARCH)).tar

# Any other target is the name of a suite, such as streams. A suite that is named here has the name of a folder.
.DEFAULT docs:
	@$(SUITES_RUN) -suites '$@'
