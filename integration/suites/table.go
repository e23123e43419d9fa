package suites

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// All returns the table: the core tier, the extended tier and the fuzz targets.
func All() []Suite {
	return slices.Concat(core(), extended(), fuzz())
}

// minutes returns a duration of so many minutes and seconds.
func minutes(m, s int) time.Duration {
	return time.Duration(m)*time.Minute + time.Duration(s)*time.Second
}

// The programs that tests build and start.
const (
	node       = "./cmd/gridproxy"
	controller = "./cmd/grid-controller"
	dnsServer  = "./cmd/grid-dns"
	plugin     = "./cmd/kubectl-grid"
	echo       = "./integration/env/programs"
	rootFS     = "./deploy/image/rootfs"
)

// The module that compares gridproxy with kube-proxy: it requires all of Kubernetes.
const agreementModule = "integration/agreement"

// hasIPVS returns the skip of tests that need a kernel without IPVS.
func hasIPVS() Skip {
	return Skip{"this kernel has IPVS", "the test is about kernels without it; a machine that has such a kernel runs it"}
}

// lacks returns the skips of tests that need a feature of the kernel which no installation adds.
// The kernels of the virtual machines have these features.
func lacks() []Skip {
	return []Skip{
		{"this kernel has no IPVS", "the ipvs suites run the test on a kernel that has it"},
		{"SCTP", "the packets suites send SCTP on kernels that have it"},
		{"CONFIG_NETFILTER_NETLINK_ACCT", "the suites rules-6.1 and rules-6.12 count on kernels that have it"},
		hasIPVS(),
		{"in a virtual machine only", "the ipvs suites run the test in one"},
		{"run `make test SUITES='ipvs-*'`", "the ipvs suites run the test in a virtual machine"},
	}
}

func fuzz() []Suite {
	row := func(name, proves, pkg, target string) Suite {
		return Suite{
			Name: name, Tier: Fuzz, Usual: minutes(1, 30), Load: 150,
			Proves: proves, Packages: []string{pkg}, Fuzz: target,
		}
	}
	return []Suite{
		row("fuzz-keys", "No annotation makes the parser of topology keys panic, or opens a Service.", "./topology", "FuzzParseKeys"),
		row("fuzz-manifests", "No file makes the reader of manifests panic.", "./topology/manifest", "FuzzManifests"),
		row("fuzz-state", "No file makes the reader of saved state panic.", "./topology/state", "FuzzDecode"),
		row("fuzz-feed", "Nothing that arrives makes the reader of DNS names panic.", "./topology/dnsfeed", "FuzzReader"),
		row("fuzz-rules", "No output of iptables-save makes its parser panic.", "./rules/netfilter", "FuzzScan"),
		row("fuzz-names", "No DNS message makes the plugin for the cluster domain panic, or gets an answer that cannot be sent.", "./cmd/grid-dns/clusterzone", "FuzzMessage"),
		row("fuzz-servers", "No list of virtual servers makes its parser panic.", "./rules/ipvs", "FuzzParse"),
		row("fuzz-archive", "No archive makes the reader of archives panic, or is unpacked above its bounds.", "./controller/federation/archive", "FuzzUnpack"),
	}
}

// LongestFirst sorts suites so that the last ones to end are short; those that run alone come last.
func LongestFirst(suites []Suite) []Suite {
	sorted := slices.Clone(suites)
	slices.SortStableFunc(sorted, func(a, b Suite) int {
		switch {
		case a.Alone && !b.Alone:
			return 1
		case b.Alone && !a.Alone:
			return -1
		}
		return int(b.Usual - a.Usual)
	})
	return sorted
}

// Listing returns the table of suites, for a terminal.
func Listing(table []Suite) string {
	var text strings.Builder
	rows := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(rows, "SUITE\tTIER\tUSUALLY\tWHERE\tPROVES")
	for _, s := range table {
		fmt.Fprintf(rows, "%s\t%s\t%s\t%s\t%s\n", s.Name, s.Tier, Seconds(s.Usual), s.Where(), s.Proves)
	}
	_ = rows.Flush() // into memory
	return text.String()
}
