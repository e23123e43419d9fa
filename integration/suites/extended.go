package suites

import (
	"slices"
	"time"
)

// extended returns the suites that make test-all adds.
func extended() []Suite {
	return slices.Concat(gridSuites(), federationSuites(), packetSuites(), longNodeSuites(), randomSuites(), olderSuites(),
		machineSuites(), siteSuites(), ipvsSuites(), otherSuites())
}

func onGrids(name, run, proves string, usual time.Duration) Suite {
	return Suite{
		Name: name, Tier: Extended, Usual: usual, Load: 90, Proves: proves,
		Packages: []string{"./integration/grids"}, Run: run,
		About: []string{"controller/flips", "controller/grid", "controller/removal", "cmd/grid-controller"},
		Needs: []Need{ControlPlane}, Starts: []string{controller, plugin},
		Reads: []string{"deploy/crds", "deploy/grid-controller.yaml"},
	}
}

func gridSuites() []Suite {
	const faults, scale = "^(TestGridFaults|TestLeaderKilledAtEachStep)$", "^TestGridScale$"
	reconcile := onGrids("grids-reconcile", "",
		"Children, owners, refused Grids and objects of other owners are treated as docs/grids.md says.", minutes(2, 0))
	reconcile.Skip, reconcile.Env = gridsCore+"|"+faults+"|"+scale+"|"+distributions, []string{delayed}
	return []Suite{
		reconcile,
		onGrids("grids-faults", faults,
			"API server and controllers are killed, others edit and delete: the Grids converge, and nothing is made twice.", minutes(2, 0)),
		onGrids("grids-scale", scale,
			"800 children in 40 units cost no write at rest, a Node that changes units at most two writes of each status, and a restart one apply of each "+
				"Service, and of the Deployment that changed meanwhile.", minutes(3, 0)),
		{
			Name: "migration", Tier: Extended, Usual: minutes(1, 20), Load: 90,
			About:    []string{"controller/grid", "controller/api/v1", "cmd/grid-controller/migrate"},
			Proves:   "SuperEdge's own controller hands its children over, by the commands of docs/migrate-from-superedge.md.",
			Packages: []string{"./integration/superedge"}, Skip: storedVersions,
			Needs: []Need{IPTables, ControlPlane, SuperEdge}, Starts: []string{controller},
			Reads: []string{"deploy/crds", "deploy/samples", "deploy/grid-controller.yaml", "docs/migrate-from-superedge.md"},
		},
	}
}

// federationSuites returns the suites of Grids that Flux distributes to several clusters.
func federationSuites() []Suite {
	distribution := func(name, run, proves string, usual time.Duration) Suite {
		s := onGrids(name, run, proves, usual)
		s.About = []string{"controller/federation", "cmd/grid-controller/join"}
		s.Needs = append(s.Needs, IPTables, Flux)
		s.Reads = append(s.Reads, "deploy/samples", "deploy/federation")
		return s
	}
	smoke := distribution("federation-smoke", "^TestDistributionSmoke$",
		"On two real control planes with Flux, a Grid of the hub is expanded in a cluster that the hub cannot reach, its status is on the hub, and its deletion reaches both.", minutes(1, 0))
	example := distribution("federation", "^(TestDistribution|TestDistributionEndless)$",
		"SuperEdge's example of several clusters on three real control planes with Flux, whose hub cannot reach one of them: children, reverted edits, "+
			"status, deletion, and no write at rest; a member that answers without end costs its hub no more memory than a large one.", minutes(5, 45))
	faults := distribution("federation-faults", "^TestDistributionFaults$",
		"In these clusters, one that is cut off goes on and catches up, killed controllers and engines lose nothing, and figures are printed.", minutes(4, 30))
	input := distribution("federation-input", "^TestDistributionInput$",
		"What is wrong with a cluster or a Grid of a distribution is reported on the hub, with a remedy, and affects nothing else; a restored hub removes nothing.", minutes(8, 0))
	fleet := distribution("federation-scale", "^TestDistributionScale$",
		"The hub of 100 clusters with 20 Grids in 50 units each writes nothing at rest, and takes at most 1.5 times the memory of one cluster with as many "+
			"rows; figures are printed.", minutes(4, 30))
	uplink := distribution("federation-bytes", "^TestDistributionBytes$",
		"What a member with 20 Grids sends to its hub in a day at rest, the renewal of its token included, is at most 2 MB; figures are printed.", minutes(11, 20))
	example.Load, faults.Load, input.Load, fleet.Load, uplink.Load = 100, 100, 60, 100, 10
	example.Verbose, faults.Verbose, fleet.Verbose, uplink.Verbose = true, true, true, true
	fleet.Needs, uplink.Rare = []Need{ControlPlane}, true
	return []Suite{smoke, example, faults, input, fleet, uplink}
}

// packetSuites returns the suites of iptables mode in other kernels than that of this machine.
func packetSuites() []Suite {
	packets := func(kernel string, usual time.Duration, run, proves string) Suite {
		return inMachine(Suite{
			Name: "packets", Tier: Extended, Usual: usual, Proves: proves,
			Packages: []string{"./integration/node/kernel"}, Run: run + "/^(nft|legacy)$", Args: []string{"-test.parallel=2"},
			About: []string{"rules/iptables", "rules/netfilter", "rules/conntrack", "rules/host"},
			Needs: []Need{IPTables},
		}, kernel)
	}
	rules := func(kernel string, usual time.Duration, run, proves string) Suite {
		return inMachine(Suite{
			Name: "rules", Tier: Extended, Usual: usual, Proves: proves,
			About:    []string{"rules/iptables", "rules/netfilter"},
			Packages: []string{"./rules/iptables"}, Run: run, Args: []string{fewChecks},
			Needs: []Need{IPTables},
		}, kernel)
	}
	return []Suite{ // of kernel 6.1, what this machine's kernel may lack: it runs the others
		packets("6.1", minutes(0, 45), "^(TestStreamProtocols|TestOpenStreamIsLeftAlone)$",
			"SCTP and TCP stay inside the unit, through both variants of iptables."),
		rules("6.1", minutes(0, 30), "^(TestCounters|TestCountersEndWithLocalhost|TestShadowBesideKubeProxy|TestTakeover)$",
			"Rules that count, kube-proxy's among them, are written, compared and taken over."),
		packets("6.12", minutes(9, 0), "", "Real packets, SCTP too, through both variants of iptables."),
		rules("6.12", minutes(8, 0), "", "Chains are written, read back and repaired."),
	}
}

// longNodeSuites returns the suites of the node daemon beside kube-proxy, and through faults.
func longNodeSuites() []Suite {
	return []Suite{{
		Name: "takeover", Tier: Extended, Usual: minutes(0, 55),
		About:    []string{"rules/iptables", "cmd/gridproxy/options", "cmd/gridproxy/otherproxy"},
		Proves:   "The rules and the command line of a real kube-proxy (iptables-nft) are taken over, without a needless write or a lost connection.",
		Packages: []string{"./integration/node"}, Run: takeoverTests, Skip: takeoverOfLegacy,
		Needs: []Need{IPTables, ControlPlane}, Starts: []string{node},
	}, {
		Name: "dns-faults", Tier: Extended, Usual: minutes(4, 20), Load: 90, Alone: true, Verbose: true,
		Proves:   "10,000 queries during each fault of the servers, the daemon and the addresses of a node: DNS is back within its limits; floods and thieves open no closed name, and another process at the address is named.",
		Packages: []string{"./integration/node"}, Run: "^(TestDNSFaults|TestDNSAddressTaken)$",
		Needs: []Need{IPTables}, Starts: []string{node, dnsServer},
		About: []string{"cmd/gridproxy/localdns", "cmd/grid-dns", "rules/dnsredirect"},
	}, {
		Name: "takeover-legacy", Tier: Extended, Usual: minutes(0, 30),
		About:    []string{"rules/iptables", "cmd/gridproxy/otherproxy"},
		Proves:   "The rules of a real kube-proxy (iptables-legacy) are taken over without a needless write or a lost connection.",
		Packages: []string{"./integration/node"}, Run: takeoverOfLegacy,
		Needs: []Need{IPTables, ControlPlane}, Starts: []string{node},
	}, {
		Name: "soak", Tier: Extended, Usual: minutes(4, 15), Load: 70, Verbose: true,
		About:    []string{"rules/syncer", "topology/watch", "cmd/gridproxy/driver"},
		Proves:   "Two minutes of random changes, faults and hostile objects: rules are right after each fault, and memory, goroutines and open files stay flat; then reboots without API server, after which the rules are those from before.",
		Packages: []string{"./integration/node"}, Run: "^TestSoak$", Env: []string{"GRIDPROXY_SOAK=2m"},
		Needs: []Need{IPTables, ControlPlane}, Starts: []string{node},
	}, {
		Name: "soak-sites", Tier: Extended, Usual: minutes(4, 45), Load: 40, Verbose: true,
		About:    []string{"rules/syncer", "topology/watch", "topology/state", "topology/changes"},
		Proves:   "Four minutes of random cuts, restarts, reboots, moves of Nodes and changes of Services with six daemons: closure holds after each step, and rules stay without the API server and equal those made from scratch with it.",
		Packages: []string{"./integration/node"}, Run: sitesSoakTest, Env: []string{"GRIDPROXY_SOAK_SITES=4m"},
		Needs: []Need{IPTables, ControlPlane}, Starts: []string{node},
	}}
}

// randomSuites returns the suites with many more random cases than the core tier has.
func randomSuites() []Suite {
	return []Suite{{
		Name: "walks", Tier: Extended, Usual: minutes(1, 0), Load: 110, Parallel: 2,
		About:  []string{"topology", "rules", "controller/grid/expand", "controller/federation/hub/plan", "controller/site/assign", "cmd/inspect/explain"},
		Proves: "Ten times as many random cases of every property of endpoints, policies, virtual servers, Grids and their distribution.",
		Packages: []string{
			"./topology", "./topology/manifest", "./topology/object", "./topology/watch",
			"./rules", "./rules/ipvs", "./rules/conntrack", "./rules/syncer",
			"./controller/grid/expand", "./controller/federation/hub/plan", "./controller/site/assign", "./cmd/inspect/explain",
		},
		Args: []string{"-rapid.checks=1000"}, Needs: []Need{IPTables}, Skips: lacks(),
	}, {
		Name: "walks-chains", Tier: Extended, Usual: minutes(5, 0), Load: 40,
		Proves:   "600 random cases of every property of chains, where unit draws 17 or 100, many of them in the kernel.",
		Packages: []string{"./rules/iptables/..."}, Args: []string{"-rapid.checks=600"},
		About: []string{"rules/iptables", "rules/netfilter"},
		Needs: []Need{IPTables}, Skips: lacks(),
	}, {
		Name: "agreement-long", Tier: Extended, Usual: minutes(1, 50), Load: 110, Verbose: true,
		About:  []string{"rules/iptables", "rules/ipvs", "rules/netfilter", "topology"},
		Proves: "On 5,000 random clusters the rules equal those of the real kube-proxy, and packets go the same way.",
		Module: agreementModule, Packages: []string{"./..."}, Run: "^(TestAgreement|TestModesAgree)$",
		Env: []string{"GRIDPROXY_AGREEMENT_CLUSTERS=5000"}, Needs: []Need{IPTables}, Skips: lacks(),
	}, {
		Name: "names-agreement", Tier: Extended, Usual: minutes(5, 0), Load: 60, Verbose: true,
		About:  []string{"cmd/grid-dns/clusterzone", "topology/dnsfeed", "topology/dnsview"},
		Proves: "On 10,000 random clusters, half of them with closed Services, every name of the cluster domain is answered as CoreDNS' kubernetes plugin answers it with the endpoints of the unit.",
		Module: agreementModule, Packages: []string{"."}, Run: "^TestNamesAgree$",
		Env: []string{"GRIDPROXY_AGREEMENT_CLUSTERS=10000"},
	}}
}

// olderTests names the tests of the harness that need the older control plane.
const olderTests = "^TestReleaseIsStarted$"

// olderSuites returns the suites of kube-proxy's own unit tests, and of other Kubernetes releases.
func olderSuites() []Suite {
	agreement := func(minor, proves string) Suite {
		return Suite{
			Name: "agreement-1." + minor, Tier: Extended, Usual: minutes(0, 30), Load: 150, Verbose: true, Proves: proves,
			Module: agreementModule, ModFile: "go-1." + minor + ".mod", Tags: "kubeproxy1" + minor,
			Packages: []string{"./..."}, Run: "^(TestAgreement|TestBadIPs)$",
			About: []string{"rules/iptables", "topology"}, Rare: true,
			Needs: []Need{IPTables}, Skips: lacks(),
		}
	}
	return []Suite{
		agreement("36", "On 500 random clusters the rules equal those of kube-proxy 1.36, and packets go the same way."),
		agreement("33", "On 500 random clusters the rules equal those of kube-proxy 1.33, the oldest one that builds with ours, and packets go the same way."),
		{
			Name: "kube-proxy-tests", Tier: Extended, Usual: minutes(0, 40), Load: 130, Verbose: true,
			About: []string{"rules/iptables", "rules/healthcheck", "rules/conntrack"}, Rare: true,
			Proves: "kube-proxy's own unit tests of rules, endpoints, UDP flows and health checks pass on our code, except for listed deviations.",
			Module: agreementModule, Packages: []string{"."}, Run: unitTestsOfKubeProxy,
			Needs: []Need{IPTables}, Reads: []string{"integration/agreement/testdata"},
		},
		{
			Name: "apiserver-1.36", Tier: Extended, Usual: minutes(1, 30), Load: 60,
			About: []string{"topology/watch", "cmd/gridproxy/apiserver"}, Rare: true,
			Proves:   "The suite apiserver, with an API server of Kubernetes 1.36.",
			Packages: []string{"./integration/node", "./integration/env/apiserver"}, Run: apiServerTests + "|" + olderTests,
			Env:   []string{"GRIDPROXY_KUBERNETES=v1.36.3"},
			Needs: []Need{IPTables, OlderControlPlane}, Starts: []string{node},
		},
	}
}

// onMachines returns a suite of a cluster of real machines. about are folders as in Suite.About.
func onMachines(name, pkg, proves string, usual time.Duration, about ...string) Suite {
	return Suite{
		Name: name, Tier: Extended, Usual: usual, Load: 90, Proves: proves, Packages: []string{pkg}, About: about,
		Needs: []Need{IPTables, ControlPlane, NodeRuntime}, Starts: []string{node, controller, dnsServer, echo, rootFS}, Reads: []string{"deploy"},
	}
}

// machineSuites returns the suites of installing and moving in clusters of real machines.
func machineSuites() []Suite {
	move := onMachines("machines", "./integration/cluster",
		"A cluster of real machines with kubelet and containerd moves from kube-proxy to the chart and back, by the commands of docs/migrate-from-kube-proxy.md.", minutes(1, 30), "rules/iptables", "cmd/gridproxy/options", "cmd/gridproxy/otherproxy")
	move.Run, move.Load = "^TestDocument$", 70
	move.Needs = append(move.Needs, Helm)
	move.Reads = append(move.Reads, "docs/migrate-from-kube-proxy.md")
	streams := onMachines("streams", "./integration/cluster/streams",
		"Take-over, restarts, kill -9, upgrades, outages and the way back cost no connection.", minutes(2, 30), "rules/iptables", "rules/syncer", "rules/conntrack", "rules/healthcheck")
	streams.Alone, streams.Verbose = true, true
	streams.Needs = append(streams.Needs, Helm)
	scenarios := onMachines("scenarios", "./integration/cluster/services",
		"112 of Kubernetes' own end-to-end scenarios for Services pass.", minutes(2, 0), "rules/iptables", "rules/healthcheck")
	scenarios.Args = []string{"-test.short"} // without kube-proxy
	scenarios.Reads = append(scenarios.Reads, "docs/scenarios.md")
	scenarios.Skips = []Skip{{"SCTP", "the packets suites send SCTP on kernels that have it"}}
	install := onMachines("helm-install", "./integration/cluster",
		"Real helm installs over SuperEdge's objects and on an empty cluster, upgrades and uninstalls.", minutes(2, 0), "deploy/charts")
	install.Run = "^TestInstall$"
	install.Needs = append(install.Needs, Helm, SuperEdge)
	pages := onMachines("pages", "./integration/cluster",
		"Every command of README.md and docs/getting-started.md from the chart to a closed Service works, and prints what the page shows.", minutes(1, 0), "cmd/kubectl-grid", "deploy/charts")
	pages.Run = "^TestPagesOnCluster$"
	pages.Needs = append(pages.Needs, Helm)
	pages.Starts = append(pages.Starts, plugin)
	pages.Reads = append(pages.Reads, "README.md", "docs/getting-started.md")
	security := onMachines("security", "./integration/cluster",
		"Pod security standards accept what the chart installs, and nothing more is granted.", minutes(0, 45), "deploy/charts")
	security.Run = "^TestProcesses$"
	demo := onMachines("cluster-demo-test", "./integration/demo",
		"make cluster-demo shows closure on a real cluster, and leaves nothing behind.", minutes(1, 20), "deploy/samples", "deploy/charts")
	demo.Run = demoOnMachines
	harness := onMachines("machines-harness", "./integration/env/machines",
		"The machines of the tests reboot, are cut off and leave nothing behind, even after kill -9.", minutes(0, 50))
	harness.Rare = true
	return []Suite{move, streams, scenarios, install, pages, security, demo, harness}
}

// siteSuites returns the suites of sites of real machines that are cut off, and of their DNS.
func siteSuites() []Suite {
	alone := onMachines("site-alone", "./integration/cluster",
		"A site without uplink for minutes, whose daemons are static Pods, serves its clients through reboots and restarts, "+
			"and no request fails when the link returns; kube-proxy's figures are printed beside.", minutes(4, 15), "topology/state", "topology/watch", "rules/syncer")
	alone.Run, alone.Alone, alone.Verbose = "^TestSiteAlone$", true, true
	alone.Needs = append(alone.Needs, Helm)
	alone.Reads = append(alone.Reads, "docs/site-alone.md")
	grace := alone
	grace.Name, grace.Run, grace.Usual = "site-alone-grace", "^TestSiteAloneGrace$", minutes(4, 10)
	grace.Proves = "When the link of such a site returns before its kubelets do, no request fails within --reconnect-grace; without a grace some do."
	dns := onMachines("dns", "./integration/cluster",
		"With the chart, the same names lead to each unit's own Pods; other names and changes are those of the real CoreDNS; a unit that is cut off has them after restarts too; "+
			"turning DNS off and on and an upgrade lose at most 10 of 10,000 queries each, helm uninstall 100, and figures are printed.", minutes(5, 0), "cmd/grid-dns", "cmd/gridproxy/localdns", "topology/dnsview")
	dns.Run, dns.Alone, dns.Verbose = "^TestDNS$", true, true
	dns.Needs = append(dns.Needs, CoreDNS, Helm)
	dns.Reads = append(dns.Reads, "integration/agreement/testdata/coredns", "docs/dns.md")
	return []Suite{alone, grace, dns}
}

// Tests of integration/node/drain with a suite of their own.
const (
	ipvsSiteAlone = "^TestSiteAlone$" // reboots machines
	ipvsSwitch    = "^(TestSwitch|TestTakeOver)$"
)

func ipvsSuites() []Suite {
	var rows []Suite
	for _, kernel := range []string{"6.1", "6.12"} {
		for _, s := range []Suite{
			{
				Name: "ipvs-streams", Usual: minutes(5, 0), Packages: []string{"./integration/node/drain"}, Needs: []Need{IPTables},
				About:  []string{"rules/ipvs", "rules/conntrack", "cmd/gridproxy/driver"},
				Skip:   ipvsSiteAlone + "|" + ipvsSwitch,
				Proves: "Endpoints drain without a lost connection.",
			},
			{
				Name: "ipvs-switch", Usual: minutes(5, 0), Packages: []string{"./integration/node/drain"}, Needs: []Need{IPTables, ControlPlane},
				About:  []string{"rules/ipvs", "rules/conntrack", "cmd/gridproxy/driver"},
				Run:    ipvsSwitch,
				Proves: "Modes switch and kube-proxy's servers are taken over without a lost connection.",
			},
			{
				Name: "ipvs-site-alone", Usual: minutes(2, 0), Packages: []string{"./integration/node/drain"}, Needs: []Need{IPTables, ControlPlane},
				About: []string{"rules/ipvs", "topology/state"},
				Run:   ipvsSiteAlone, Verbose: true,
				Proves: "A site without uplink answers every request inside its unit after a reboot too, with a clock that is wrong; kube-proxy's figures are printed beside.",
			},
			{
				Name: "ipvs-dns-faults", Usual: minutes(7, 0), Packages: []string{"./integration/node"}, Needs: []Need{IPTables},
				Run: "^(TestDNSFaults|TestDNSAddressTaken)$", OwnClock: true, Verbose: true,
				Proves: "In IPVS mode too DNS is back within the limits of dns-faults: 10,000 queries during each fault, at 500 a second by the guest's clock (200 where daemon and servers stay killed); another process at the address is named.",
				About:  []string{"cmd/gridproxy/localdns", "cmd/grid-dns", "rules/dnsredirect"},
			},
			{
				Name: "ipvs-skeleton", Usual: minutes(2, 0), Packages: []string{"./rules/iptables"},
				About: []string{"rules/iptables"},
				Run:   "Hairpin|IPVS|Modes|RoundTrip", Args: []string{fewChecks}, Needs: []Need{IPTables},
				Proves: "The fixed chains beside virtual servers are written, read back and repaired.",
			},
			{
				Name: "ipvs-daemon", Usual: minutes(0, 45), Packages: []string{"./cmd/gridproxy"},
				About: []string{"rules/ipvs", "cmd/gridproxy/driver", "cmd/gridproxy/options"},
				Run:   "IPVS|Modes|Modules", Needs: []Need{IPTables},
				Proves: "The daemon in IPVS mode: start, modules, change of modes, cleanup.",
			},
			{
				Name: "ipvs-agreement", Usual: minutes(3, 15), Module: agreementModule, Packages: []string{"."},
				About: []string{"rules/ipvs"},
				Run:   "Kernel", Needs: []Need{IPTables, ControlPlane},
				Proves: "Virtual servers equal those of the real kube-proxy.",
			},
			{
				Name: "ipvs-cost", Usual: minutes(2, 15), Packages: []string{"./integration/node/cost"}, Needs: []Need{IPTables},
				About:  []string{"rules/ipvs", "cmd/gridproxy/driver"},
				Proves: "A change costs as many system calls and processes as decided, at any number of Services.",
			},
		} {
			s.Tier = Extended
			rows = append(rows, inMachine(s, kernel))
		}
	}
	all := ipvsPackets("ipvs-packets", Extended, minutes(5, 0), "6.12", "Real packets through virtual servers.")
	others := ipvsPackets("ipvs-packets", Extended, minutes(4, 10), "6.1", "Real packets through virtual servers.")
	others.Skip = ipvsClosure
	return append(rows, others, all, ipvsRules(Extended, "6.12"))
}

// otherSuites returns the suites of rights, packaging, upgrades and the tests' own tools.
func otherSuites() []Suite {
	return []Suite{
		{
			Name: "upgrade", Tier: Extended, Usual: minutes(1, 0),
			About:    []string{"rules/iptables", "controller/grid", "controller/site", "deploy/charts"},
			Proves:   "From a pinned older commit and back, children, rules and open connections stay as they are.",
			Packages: []string{"./integration/node"}, Run: upgradeTests,
			Needs: []Need{IPTables, ControlPlane}, Starts: []string{node, controller}, Reads: []string{"deploy"},
		},
		{
			Name: "rights", Tier: Extended, Usual: minutes(2, 0), Load: 70,
			About:    []string{"deploy/charts", "deploy/federation", "cmd/gridproxy/options"},
			Proves:   "Without any one of its rights or capabilities, the daemon or the controller cannot do its work: none is superfluous, and a member of a fleet can only do what it needs.",
			Packages: []string{"./integration/manifests"}, Run: "^(TestCapabilities|TestControllerRights|TestDaemonRights|TestDNSPod|TestDNSRights|TestDocument|TestFleetMember|TestFluxRights|TestSettings|TestSiteAlone)$",
			Needs: []Need{IPTables, ControlPlane, Helm, Flux}, Starts: []string{node, controller}, Reads: []string{"deploy", "docs/security.md", "docs/site-alone.md"},
		},
		{
			Name: "chart", Tier: Extended, Usual: minutes(1, 0),
			About:    []string{"deploy/charts", "cmd/gridproxy/metrics"},
			Proves:   "The chart renders what deploy holds and refuses wrong values; a real API server accepts it, and a real Prometheus has what its dashboard and alerts ask for.",
			Packages: []string{"./integration/manifests/chart"},
			Needs:    []Need{IPTables, ControlPlane, Helm, Prometheus, Systemd}, Starts: []string{node, controller},
			Reads: []string{"deploy", "docs/monitoring.md", "docs/metrics.md"},
		},
		{
			Name: "image-test", Tier: Extended, Usual: minutes(9, 0), Load: 100, Limit: minutes(25, 0),
			About: []string{"deploy/image"}, Rare: true,
			Proves:   "The container image for amd64, arm64 and arm/v7 is built without a registry and holds what it should.",
			Packages: []string{"./integration/manifests"}, Run: "^(TestImage|TestLayers)$",
			// The mirror of security updates may be in the middle of a sync, for one architecture for days.
			Env:   []string{"ROOTFS_FLAGS=-security-mirror="},
			Needs: []Need{Buildah}, Starts: []string{node, controller, dnsServer}, Reads: []string{"Dockerfile", "deploy/image"},
		},
		{
			Name: "harness", Tier: Extended, Usual: minutes(1, 30), Load: 80,
			Proves:   "The control planes and fake kubelets of the tests behave as their documentation says, and Flux as the distribution of Grids expects.",
			Packages: []string{"./integration/env/nodes", "./integration/env/apiserver"}, Skip: olderTests,
			Needs: []Need{IPTables, ControlPlane, Flux}, Starts: []string{controller},
		},
		{
			Name: "vmexec", Tier: Extended, Usual: minutes(1, 10), Rare: true,
			Proves:   "The output and the end of a test in a virtual machine reach the process that started it, and no machine outlives it.",
			Packages: []string{"./integration/env/vm"},
			Needs:    []Need{Machine61, Machine612},
		},
		{
			Name: "lint", Tier: Extended, Usual: minutes(2, 0), Load: 110,
			Proves:  "golangci-lint, codespell and our rules of prose find nothing in the code; long subjects of commits are listed.",
			Command: []string{"integration/suites/lint"}, Needs: []Need{Codespell},
			Reads: []string{"cmd", "rules", "topology", "controller", "integration", "docs", "README.md"},
		},
	}
}
