package suites

import (
	"slices"
	"time"
)

// core returns the suites of make test.
func core() []Suite {
	return slices.Concat(codeSuites(), nodeSuites(), controllerSuites(), []Suite{ipvsClosed(), ipvsRules(Core, "6.1")})
}

// codeSuites returns the suites of the code itself, and of what other suites test with.
func codeSuites() []Suite {
	return []Suite{
		{
			Name: "vet", Tier: Core, Usual: minutes(0, 30), Load: 120,
			Proves:  "The code is formatted, and go vet finds nothing.",
			Command: []string{"integration/suites/vet"},
		},
		{
			Name: "unit", Tier: Core, Usual: minutes(3, 30), Parallel: 2, Load: 90,
			Proves: "Properties, tables and scripts: what is decided, parsed, rendered and printed, by packages and by both programs.",
			Packages: []string{
				"./cmd/gridproxy", "./rules/iptables/...", // the longest ones first, side by side
				"./topology/...", "./controller/...", "./deploy/...", "./cmd/...",
				"./rules", "./rules/conntrack", "./rules/dnsredirect", "./rules/healthcheck", "./rules/host",
				"./rules/kernelsocket", "./rules/names", "./rules/netfilter/...", "./rules/syncer", // without ipvs
				"./integration/suites/...", "./integration/env/need", "./integration/env/document", "./integration/env/programs", "./integration/env/wait",
			},
			Needs: []Need{IPTables, ControlPlane, Strace}, Skips: lacks(),
		},
		{
			Name: "ipvs", Tier: Core, Usual: minutes(0, 10), Load: 90,
			Proves:   "Which virtual servers are to exist, how they are encoded and read, and what gridproxy says on a kernel without IPVS.",
			Packages: []string{"./rules/ipvs"},
			Needs:    []Need{IPTables}, Skips: lacks(), About: []string{"rules/ipvs"},
		},
		{
			Name: "race", Tier: Core, Usual: minutes(1, 0), Parallel: 2, Load: 60,
			Proves: "What runs side by side in the daemon, the controller and grid-dns shares no memory without a lock.",
			Packages: []string{
				"./rules/syncer", "./topology/watch", "./controller/grid", "./cmd/gridproxy/localdns", "./cmd/grid-dns/feed",
			},
			Race: true, Env: []string{"CGO_ENABLED=1", "RAPID_CHECKS=10"}, // the race detector is C
			Needs: []Need{GCC},
		},
		{
			Name: "docs", Tier: Core, Usual: minutes(0, 15),
			Proves:   "On every page links lead somewhere, commands, flags, make targets and values of the chart exist, and spelling and words are right; packages import only what their layer may.",
			Packages: []string{"./integration/manifests/layout"},
			Needs:    []Need{Codespell}, Starts: []string{node, controller, dnsServer, plugin},
			Reads: []string{"docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "Makefile", "deploy"},
		},
		{
			Name: "laptop", Tier: Core, Usual: minutes(0, 20), Load: 110,
			Proves:   "Every command of README.md and docs/getting-started.md that needs no cluster works in a new clone, and prints what the page shows.",
			Packages: []string{"./integration/cluster"}, Run: "^(TestPagesOnLaptop|TestDeviations)$",
			Needs: []Need{IPTables}, Starts: []string{node},
			Reads: []string{"README.md", "docs/getting-started.md", "Makefile", "deploy/samples"},
		},
		{
			Name: "lab", Tier: Core, Usual: minutes(0, 25),
			Proves:   "The network namespaces, connections and parsers that other suites test with behave as documented; make demo shows closure and leaves nothing behind.",
			Packages: []string{"./integration/demo", "./integration/env/traffic", "./integration/env/netns", "./integration/env/vm"},
			Skip:     demoOnMachines + "|" + inGuest,
			Needs:    []Need{IPTables}, Starts: []string{node},
		},
	}
}

// Tests of the packages of lab that other suites run.
const (
	demoOnMachines = "^TestMachines"                                             // make cluster-demo
	inGuest        = "^(TestExec|TestOwnClock|TestKernels|TestEnd|TestRefusal)$" // of vmexec
)

// The tests of integration/node, by the suites that run them.
const (
	operationTests = "^(TestOperation|TestFaultsAreNamed|TestNodeChangesUnit|TestSoak|TestFlat)$"
	apiServerTests = "^(TestFailover|TestLeastPrivilege|TestNothingBeforeEverythingIsRead|TestHeartbeatsAreSilent|TestFollowsEveryKind|" +
		"TestGapWhileAPIServerIsDown|TestGone|TestCutAgainAndAgain|TestCutInTheMiddleOfTheFirstRead|TestSlow|TestStalled|TestStranded|" +
		"TestManifestsAreTakenAsByAPIServers|TestStartsBeforeTheAPIServer|TestOnlyOwnUnitIsRead|TestNodeChangesUnitInTheCluster|TestManyKeysWatchAllNodes|TestSmallestForms)$"
	takeoverTests    = "^(TestCommandLine|TestTakeover|TestDaemonTakesOver|TestKubeProxyGoesOn|TestShadow|TestTrialBesideKubeProxy)$"
	takeoverOfLegacy = takeoverTests + "/^legacy$"
	sitesSoakTest    = "^TestSitesSoak$"
	upgradeTests     = "^(TestController|TestDaemon|TestTaintsOfUnits)$"
)

func nodeSuites() []Suite {
	return []Suite{
		{
			Name: "packets", Tier: Core, Usual: minutes(1, 40), Load: 55,
			Proves:   "Real packets through both variants of iptables and both families: closure, policies, NodePorts, affinity, restarts, tampering.",
			Packages: []string{"./integration/node/kernel"},
			Needs:    []Need{IPTables}, Starts: []string{node}, Skips: lacks(),
		},
		{
			Name: "apiserver", Tier: Core, Usual: minutes(2, 10), Load: 55,
			Proves:   "A real API server that is away, cut off, slow or compacted costs the node no change and opens nothing; of 1,000 odd objects manifests take what it takes.",
			Packages: []string{"./integration/node"}, Run: apiServerTests,
			Needs: []Need{IPTables, ControlPlane}, Starts: []string{node},
		},
		{
			Name: "agreement", Tier: Core, Usual: minutes(0, 30), Load: 150, Verbose: true,
			Proves: "On 500 random clusters the rules equal those of the real kube-proxy, packets go the same way, and names are answered as CoreDNS' kubernetes plugin answers them.",
			Module: agreementModule, Packages: []string{"./..."}, Skip: unitTestsOfKubeProxy,
			Needs: []Need{IPTables}, Skips: lacks(),
		},
		{
			Name: "operation", Tier: Core, Usual: minutes(2, 0), Load: 35,
			Proves:   "What an operator sees: Events, metrics, logs and health of a running daemon; once through all faults and hostile objects of the soak.",
			Packages: []string{"./integration/node"}, Run: operationTests,
			Needs: []Need{IPTables, ControlPlane}, Starts: []string{node, plugin},
		},
		{
			Name: "site-alone-smoke", Tier: Core, Usual: minutes(0, 30), Load: 60,
			Proves:   "A node that is rebooted while it is cut off serves from its saved state, and holds its endpoints when the API server returns; without either it does not.",
			Packages: []string{"./integration/node"}, Run: "^TestRebootWhileCutOff$",
			Needs: []Need{IPTables, ControlPlane}, Starts: []string{node},
		},
		{
			Name: "dns-smoke", Tier: Core, Usual: minutes(0, 25), Load: 80, Verbose: true,
			Proves:   "While Pods ask, the DNS of a node is upgraded, and the daemon is killed: no query reaches the DNS of the cluster, and no answer is wrong; lost queries are printed.",
			Packages: []string{"./integration/node"}, Run: "^TestDNSSmoke$",
			Needs: []Need{IPTables}, Starts: []string{node, dnsServer},
		},
	}
}

// unitTestsOfKubeProxy compiles kube-proxy's packages once more, with our code in them.
const unitTestsOfKubeProxy = "^TestKubeProxyUnitTests$"

func controllerSuites() []Suite {
	return []Suite{
		{
			Name: "grids", Tier: Core, Usual: minutes(4, 20), Load: 40,
			Proves: "SuperEdge's manual as it is printed, on a real control plane; a lost unit keeps its children for the grace, also when leaders are killed; " +
				"the API server accepts and refuses Grids as the controller does.",
			Packages: []string{"./integration/grids"}, Run: gridsCore,
			Needs: []Need{IPTables, ControlPlane}, Starts: []string{node, controller},
			Reads: []string{"deploy/crds", "deploy/samples", "deploy/grid-controller.yaml"},
		},
		{
			Name: "stored-versions", Tier: Core, Usual: minutes(0, 20), Load: 60,
			Proves:   "grid-controller migrate-crds stores every object in the newest version, even if writes are refused or objects change meanwhile.",
			Packages: []string{"./integration/superedge"}, Run: storedVersions,
			Needs: []Need{ControlPlane}, Starts: []string{controller}, Reads: []string{"deploy/crds"},
		},
		{
			Name: "sites", Tier: Core, Usual: minutes(2, 30), Load: 70,
			Proves:   "NodeUnits and NodeGroups of both versions on a real control plane: what Nodes get, keep and lose.",
			Packages: []string{"./integration/sites"},
			Needs:    []Need{IPTables, ControlPlane}, Starts: []string{controller}, Env: []string{delayed},
			Reads: []string{"deploy/crds", "deploy/samples", "deploy/grid-controller.yaml"},
		},
	}
}

// storedVersions names the tests of the move from SuperEdge that need no program of SuperEdge.
const storedVersions = "^TestMigration$"

// delayed holds the writes of controllers, so that a test which relies on a quick one fails here.
const delayed = "GRIDPROXY_TEST_DELAY=800ms"

// gridsCore names the tests of Grids in the core tier: their definitions, the normal path, lost
// units, a killed leader, and the command line.
const gridsCore = "^(TestCRDs|TestManual|TestTranscripts|TestAllNodesDeleted|TestHalfTheFleetIsLost|TestGroupDeletedUnderTraffic|" +
	"TestRekeyed|TestGraceOutlivesControllers|" +
	"TestDiff|TestDiffOfDrift|TestRunWithoutCRDs)$"

// distributions names the tests of how Grids are distributed.
const distributions = "^TestDistribution"

// ipvsClosure names the tests of what the core tier promises in IPVS mode.
const ipvsClosure = "^(TestClosureAndLabels|TestEmptyUnitIsRefused|TestRestart|TestIPVSTampering)$"

// ipvsPackets returns a suite that sends real packets through virtual servers, on a kernel.
func ipvsPackets(name string, tier Tier, usual time.Duration, kernel, proves string) Suite {
	return inMachine(Suite{
		Name: name, Tier: tier, Usual: usual, Load: 75, Proves: proves,
		Packages: []string{"./integration/node/kernel"}, Run: "/^ipvs", Args: []string{"-test.parallel=3"},
		Needs: []Need{IPTables},
		About: []string{"rules/ipvs"},
	}, kernel)
}

func ipvsClosed() Suite {
	s := ipvsPackets("ipvs-closure", Core, minutes(3, 30), "6.1",
		"Real packets through virtual servers: closure, also of an empty unit, restarts, tampering.")
	s.Run = ipvsClosure + s.Run
	return s
}

// ipvsRules returns the suite of the virtual servers of IPVS mode, on a kernel.
func ipvsRules(tier Tier, kernel string) Suite {
	return inMachine(Suite{
		Name: "ipvs-rules", Tier: tier, Usual: minutes(1, 15), Load: 75,
		Proves:   "Virtual servers are written, read back and repaired.",
		Packages: []string{"./rules/ipvs"}, Args: []string{fewChecks},
		Needs: []Need{IPTables},
		Skips: []Skip{{"docs/design.md is not here", "the suite ipvs runs the test in the repository"}},
		About: []string{"rules/ipvs"},
	}, kernel)
}

// fewChecks bounds the cases of a random test in a virtual machine, where one takes ten times as
// long.
const fewChecks = "-rapid.checks=10"

// inMachine returns the suite on a kernel in a virtual machine, which has one processor. The kernel
// is in its name. Suites on kernel 6.12 are rare.
func inMachine(s Suite, kernel string) Suite {
	s.Name, s.Kernel, s.Rare = s.Name+"-"+kernel, kernel, kernel == "6.12"
	s.Starts = append(s.Starts, node, dnsServer, "./integration/env/vm") // which every guest gets
	s.Skips = append(s.Skips, hasIPVS())
	s.Proves = s.Proves[:len(s.Proves)-1] + ", on Debian's kernel " + kernel + "."
	return s
}
