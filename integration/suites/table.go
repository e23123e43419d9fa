package suites

import (
	"slices"
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
