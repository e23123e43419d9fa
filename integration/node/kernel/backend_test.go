package kernel

import (
	"os"
	"testing"

	"gridproxy/integration/env/need"
)

// The proxy modes.
const (
	modeIPTables = "iptables"
	modeIPVS     = "ipvs"
)

// backend is how daemons write what they enforce.
type backend struct {
	name    string // of the subtest
	mode    string // --proxy-mode
	variant string // --iptables-variant, in both modes
}

func (b backend) flags() []string {
	return []string{"--proxy-mode", b.mode, "--iptables-variant", b.variant}
}

var (
	nft    = backend{"nft", modeIPTables, "nft"}
	legacy = backend{"legacy", modeIPTables, "legacy"}
	ipvs   = backend{"ipvs", modeIPVS, "nft"}
	// ipvsLegacy differs from ipvs in nothing but the program that writes the few rules around IPVS, so
	// few tests need it.
	ipvsLegacy = backend{"ipvs-legacy", modeIPVS, "legacy"}
)

// eachBackend runs a test with both kinds of iptables and with IPVS, side by side.
func eachBackend(t *testing.T, test func(*testing.T, backend)) {
	t.Helper()
	eachOf(t, test, nft, legacy, ipvs)
}

// eachOf runs a test with some backends, side by side.
func eachOf(t *testing.T, test func(*testing.T, backend), backends ...backend) {
	t.Helper()
	need.IPTables(t)
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			if b.mode == modeIPVS {
				need.IPVS(t)
			}
			t.Parallel()
			test(t, b)
		})
	}
}

// guest says whether this is a virtual machine of integration/env/vm: it has IPVS, and its
// processor is emulated.
func guest() bool { return os.Getenv("GRIDPROXY_GUEST") != "" }

// verifyPeriod is how often daemons compare the kernel with what they wrote. In a guest that alone
// would keep six daemons busy, so there only tests of repair do it often.
func verifyPeriod() string {
	if guest() {
		return "1m"
	}
	return "1s"
}
