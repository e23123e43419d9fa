# Everything a person runs. Tests and demo need root: they make network namespaces.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
GO          ?= go
FUZZTIME    ?= 30s
# Cases of a random test in a virtual machine, where a case takes ten times as long.
VMCHECKS    ?= 10
KERNELS     ?= 6.1 6.12
# The same for all, tests too, as for the programs that are built: on a fresh machine, what they share is compiled once.
# Compilers leave out what only debuggers read and collect less garbage: a quarter less time, for more memory.
COMPILE      = -trimpath -gcflags=all=-dwarf=false '-toolexec=env GOGC=400'
export CGO_ENABLED := 0
export GOFLAGS := $(if $(findstring $(COMPILE),$(GOFLAGS)),$(GOFLAGS),$(or $(GOFLAGS),-buildvcs=false) $(COMPILE))

TESTSUM = $(GO) tool -modfile=$(CURDIR)/go.mod gotestsum --format pkgname --format-hide-empty-pkg --
# The seed of a random run must be seen even where all is well.
SEEDSUM = $(GO) tool -modfile=$(CURDIR)/go.mod gotestsum --format standard-verbose --
TOOLS   = iptables-nft iptables-legacy ip conntrack curl
VMTOOLS = qemu-system-x86_64 busybox xz ipvsadm ipset depmod nft

.PHONY: help
help: ## show this list
	@echo "gridproxy: Service traffic that stays inside its NodeUnit"
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/gridproxy and bin/grid-controller; VERSION=1.0: what they say they are, else what git says
	@mkdir -p bin
	$(GO) build -buildvcs=auto -ldflags "-s -w $(if $(VERSION),-X gridproxy/cmd/command.version=$(VERSION))" \
		-o bin/ ./cmd/gridproxy ./cmd/grid-controller

.PHONY: demo
demo: packages ## six nodes in two units on this machine: who answers whom
	@$(GO) run ./integration/demo

.PHONY: cluster-demo
cluster-demo: packages compiler ## a real cluster of four machines on this one: the chart, the Grids of the sample, who answers whom
	@$(GO) run ./integration/machines/demo

.PHONY: test
test: packages tools ## every test; says at the end what was skipped and why
	@$(MAKE) --no-print-directory vm || echo "== no virtual machines: their tests will be skipped, or fail with GRIDPROXY_REQUIRE=all"
	@echo "== unit tests, real kernels, real API server"
	$(TESTSUM) -count=1 -timeout 45m $$($(GO) list ./... | grep -v /integration/machines)
	@echo "== agreement with kube-proxy 1.36.3"
	cd integration/agreement && $(SEEDSUM) -v -count=1 -timeout 30m ./...
	@echo "== real machines: kubelet, containerd and network plugins on each"
	@$(MAKE) --no-print-directory test-cluster
	@echo "== IPVS mode in virtual machines"
	@$(MAKE) --no-print-directory test-ipvs

.PHONY: test-unit
test-unit: ## only the tests that need neither root nor anything installed
	$(TESTSUM) -count=1 -skip '^Test(Diff|RunWithoutCRDs|Migration$$)' ./topology/... ./rules ./rules/syncer/... ./controller/api/... ./controller/expand ./controller/site/... ./cmd/...

.PHONY: agreement
agreement: ## compare random clusters with the real kube-proxy's rules
	cd integration/agreement && $(GO) test -count=1 -v -timeout 30m ./...

.PHONY: kernel
kernel: packages ## real packets through both iptables variants and both families
	$(GO) test -count=1 -v -timeout 30m ./integration/kernel/...

.PHONY: apiserver
apiserver: packages tools ## watch gaps, 410 Gone, cut and slow connections on a real API server; take-over from a real kube-proxy
	$(GO) test -count=1 -v -timeout 30m ./integration/apiserver/... ./integration/takeover/...

.PHONY: grids
grids: packages tools ## the Grids on a real control plane: controller manager, scheduler, garbage collector
	$(GO) test -count=1 -v -timeout 30m ./integration/cluster/... ./integration/grids/...

.PHONY: sites
sites: tools ## NodeUnits and NodeGroups on a real control plane: the manual's cluster, what Nodes get, both versions
	$(GO) test -count=1 -v -timeout 30m ./controller/site/... ./integration/sites/...

.PHONY: rights
rights: packages tools ## the daemon and the controller without each of their rights and capabilities; docs/security.md against the manifests
	$(GO) test -count=1 -v -timeout 30m ./integration/rights/...

.PHONY: superedge
superedge: tools ## move over from SuperEdge's own controller and definitions, by the commands of docs/migrate-from-superedge.md
	$(GO) test -count=1 -v -timeout 20m ./integration/moveover/... ./cmd/grid-controller/migrate/...

# The streams by themselves: their figures are of a machine that does nothing else. Of the others two packages at a
# time, since a cluster of machines mostly waits; the longest first.
.PHONY: test-cluster
test-cluster: packages tools ## a real cluster of machines: closure, streams through take-over and upgrades, helm, rights, Kubernetes' scenarios
	@failed=0; \
	$(SEEDSUM) -v -count=1 -timeout 20m ./integration/machines/streams || failed=1; \
	$(SEEDSUM) -v -count=1 -p 2 -timeout 45m $$($(GO) list ./integration/machines/{services,install,takeover,demo} ./integration/machines/... | grep -v /streams) || failed=1; \
	exit $$failed

.PHONY: chart
chart: packages tools ## the Helm chart: its values, and real helm on real machines: install, upgrade, uninstall, over SuperEdge's objects too
	$(GO) test -count=1 -v -timeout 20m ./integration/chart/... ./integration/machines/install

.PHONY: streams
streams: packages tools ## on a real cluster, from kube-proxy 1.36.3 to gridproxy and back: connections that go on, closure, memory and CPU
	$(GO) test -count=1 -v -timeout 20m ./integration/machines/streams

.PHONY: scenarios
scenarios: packages tools ## Kubernetes' own end-to-end scenarios for Services, against gridproxy and kube-proxy 1.36.3, side by side in a table
	$(GO) test -count=1 -v -timeout 30m -run '^TestScenarios$$' ./integration/machines/services

.PHONY: test-ipvs
test-ipvs: packages ## IPVS mode on Debian's kernels 6.1 and 6.12, in virtual machines: packets, draining, switching, tampering, agreement, cost
	@$(call in-guests,ipvs-packets ipvs-streams ipvs-rules ipvs-skeleton ipvs-daemon ipvs-agreement ipvs-cost)

.PHONY: test-vm
test-vm: packages ## iptables mode on the same kernels, with both variants; SCTP too
	@$(call in-guests,packets rules)

# What runs in a virtual machine: the package, and the flags of its tests. What the tests miss there is
# a failure: a guest has everything.
package-ipvs-packets   = integration/kernel
flags-ipvs-packets     = -test.run='/^ipvs' -test.parallel=3
package-ipvs-streams   = integration/drain
package-ipvs-rules     = rules/ipvs
flags-ipvs-rules       = -rapid.checks=$(VMCHECKS)
package-ipvs-skeleton  = rules/iptables
flags-ipvs-skeleton    = -test.run='Hairpin|IPVS|Modes|RoundTrip' -rapid.checks=$(VMCHECKS)
package-ipvs-daemon    = cmd/gridproxy
flags-ipvs-daemon      = -test.run='IPVS|Modes|Modules'
package-ipvs-agreement = integration/agreement
flags-ipvs-agreement   = -test.run=Kernel
package-ipvs-cost      = integration/cost
package-packets        = integration/kernel
flags-packets          = -test.run='/^(nft|legacy)$$' -test.parallel=2
package-rules          = rules/iptables
flags-rules            = -rapid.checks=$(VMCHECKS)

# in-guests runs some of these on both kernels, two machines at a time, each with a processor of its own;
# the output of each comes in one piece, and what failed once more in short at the end. Without machines
# it says so, and fails only if they are required.
in-guests = if $(MAKE) --no-print-directory vm; then \
	$(MAKE) --no-print-directory -j2 vm-programs $(addprefix vm-tests-,$(1)) && rm -rf bin/vm/log && \
	{ $(MAKE) --no-print-directory -k -j2 --output-sync=target $(foreach g,$(call guests,$(1)),guest-$(g)) || \
	{ for guest in $(call guests,$(1)); do grep -qs '^ok' bin/vm/log/$$guest || $(failures); done; exit 1; }; }; \
	elif [[ "$${INTEGRATION_REQUIRE:-}" =~ (^|[ ,])vm($$|[ ,]) ]] || [ "$${GRIDPROXY_REQUIRE:-}" = all ]; then \
	echo "== MISSING: virtual machines, which are required (INTEGRATION_REQUIRE, GRIDPROXY_REQUIRE); see above"; exit 1; \
	else echo "== SKIPPED: $(1): there are no virtual machines here; see above"; fi
guests   = $(foreach s,$(1),$(foreach k,$(KERNELS),$(k)-$(s)))
failures = { echo "== FAILED: $$guest; all of its output is above and in bin/vm/log/$$guest"; \
	[ ! -e bin/vm/log/$$guest ] || awk -f integration/vmexec/failures.awk bin/vm/log/$$guest; }

# Each is linked once for all kernels.
vm-tests-%:
	@mkdir -p bin/vm
	@cd $(package-$*) && $(GO) test -c -ldflags "-s -w" -o $(CURDIR)/bin/vm/$*.test .

guest-%: kernel = $(firstword $(subst -, ,$*))
guest-%: suite  = $(patsubst $(kernel)-%,%,$*)
guest-%:
	@export GRIDPROXY_REQUIRE=all GRIDPROXY_BINARY=$(CURDIR)/bin/vm/gridproxy GRIDPROXY_KUBE_PROXY=$$(cat bin/vm/tools)/kube-proxy; \
	mkdir -p bin/vm/log; cd $(package-$(suite)) && \
	{ $(CURDIR)/bin/vm/vmexec -kernel $(kernel) $(CURDIR)/bin/vm/$(suite).test -test.timeout=60m $(flags-$(suite)) && \
	echo "ok $(package-$(suite)) $${SECONDS}s"; } 2>&1 | tee $(CURDIR)/bin/vm/log/$* | sed 's/^\(ok\|FAIL\|---\)/$(kernel) $(suite): \1/'

.PHONY: bench-ipvs
bench-ipvs: packages vm vm-programs ## gridproxy in both modes against kube-proxy 1.36.3 in IPVS mode, in a virtual machine: ratios
	@$(GO) build -ldflags "-s -w" -o bin/vm/bench-ipvs ./integration/bench/ipvs
	@GRIDPROXY_BINARY=$(CURDIR)/bin/vm/gridproxy GRIDPROXY_KUBE_PROXY=$$(cat bin/vm/tools)/kube-proxy \
		bin/vm/vmexec -kernel $(firstword $(KERNELS)) bin/vm/bench-ipvs

.PHONY: vm-programs
vm-programs: tools
	@mkdir -p bin/vm
	@$(GO) build -ldflags "-s -w" -o bin/vm/ ./integration/vmexec ./cmd/gridproxy
	@$(GO) run ./integration/controlplane/ensure > bin/vm/tools

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (30s)
	$(GO) test -run '^$$' -fuzz '^FuzzParseKeys$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./topology
	$(GO) test -run '^$$' -fuzz '^FuzzManifests$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./topology/manifest
	$(GO) test -run '^$$' -fuzz '^FuzzScan$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./rules/iptables
	$(GO) test -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./rules/ipvs

.PHONY: bench
bench: packages tools ## gridproxy against kube-proxy 1.36.3 on one API server: ratios
	$(GO) run ./integration/bench

.PHONY: tools
tools: compiler ## build etcd, Kubernetes 1.36.3, containerd and SuperEdge's controller once (about 11 min), kept in the user's cache folder
	@$(GO) run ./integration/controlplane/ensure

# What CI does while it compiles, since the network is idle then.
.PHONY: fetch
fetch: packages compiler ## fetch what the others fetch as they need it: Debian packages, Go modules, kernels
	@for module in kcp noderuntime superedge helm; do (cd integration/$$module && $(GO) mod download); done
	@$(MAKE) --no-print-directory vm

.PHONY: packages
packages: ## install iptables, iproute2, conntrack and curl where they are missing (Debian, root)
	@missing=""; for t in $(TOOLS); do command -v $$t >/dev/null || missing="$$missing $$t"; done; \
	if [ -n "$$missing" ]; then \
		echo "== installing iptables, iproute2, conntrack, curl (missing:$$missing)"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq iptables iproute2 conntrack curl >/dev/null; \
	fi

.PHONY: compiler
compiler: ## install gcc and the headers of libseccomp, which runc is built with, where they are missing (Debian, root)
	@missing=""; for t in gcc pkg-config; do command -v $$t >/dev/null || missing="$$missing $$t"; done; \
	test -e /usr/include/seccomp.h || missing="$$missing seccomp.h"; \
	if [ -n "$$missing" ]; then \
		echo "== installing gcc, libc6-dev, pkg-config, libseccomp-dev (missing:$$missing)"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			gcc libc6-dev pkg-config libseccomp-dev >/dev/null; \
	fi

.PHONY: vm
vm: ## install QEMU and the tools for virtual machines where they are missing (Debian, root), fetch the kernels
	@missing=""; for t in $(VMTOOLS); do command -v $$t >/dev/null || missing="$$missing $$t"; done; \
	if [ -n "$$missing" ]; then \
		echo "== installing QEMU, busybox, xz, ipvsadm, ipset, kmod, nftables (missing:$$missing)"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			qemu-system-x86 busybox-static xz-utils ipvsadm ipset kmod nftables >/dev/null; \
	fi
	@for kernel in $(KERNELS); do $(GO) run ./integration/vmexec -kernel $$kernel -fetch; done

.PHONY: generate
generate: ## write deploy/crds and the deep copies anew from controller/api, and the plain manifests from the chart
	$(GO) tool controller-gen object crd paths=./controller/api/... output:crd:dir=deploy/crds
	$(GO) run ./integration/chart/plain

.PHONY: vet
vet: ## gofmt, go vet
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	cd integration/agreement && $(GO) vet ./...

.PHONY: lint
lint: vet ## gofmt, go vet, golangci-lint
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.5.0 run ./...

.PHONY: image
image: ## build the container image gridproxy:dev with docker, podman or buildah; ARCH=arm64 or arm: for another machine, all: a manifest list
	@$(IMAGE_SETTINGS) deploy/image/build

.PHONY: image-base
image-base: ## make a GO_IMAGE for make image out of Debian's packages and this machine's Go, where there is no registry: GO_IMAGE=localhost/gridproxy-go:dev
	@$(IMAGE_SETTINGS) deploy/image/build base

# Not part of make test: it makes a Debian, and compiles everything for three architectures from nothing.
.PHONY: test-image
test-image: builder ## the image for amd64, arm64 and arm/v7, made with buildah and no registry; fetches some hundred MB, not part of make test
	INTEGRATION_REQUIRE=image $(GO) test -count=1 -v -timeout 90m ./integration/image

.PHONY: builder
builder: ## install buildah and debootstrap where they are missing (Debian, root)
	@missing=""; for t in buildah debootstrap; do command -v $$t >/dev/null || missing="$$missing $$t"; done; \
	if [ -n "$$missing" ]; then \
		echo "== installing$$missing"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	fi

# What deploy/image/build reads, from the command line of make or the environment.
IMAGE_SETTINGS = $(foreach v,BUILDER ARCH IMAGE VERSION REVISION GO_IMAGE BASE_IMAGE MIRROR ROOTFS_FLAGS BUILD_FLAGS,$(if $($(v)),$(v)="$($(v))"))

.PHONY: rootfs
rootfs: ## make the image's root file system as a tar for ARCH (this machine's), without any container tool
	@mkdir -p bin
	@$(GO) run ./deploy/image/rootfs $(ROOTFS_FLAGS) $(or $(ARCH),$(shell $(GO) env GOARCH)) bin/rootfs-$(or $(ARCH),$(shell $(GO) env GOARCH)).tar
