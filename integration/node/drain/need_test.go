package drain

import (
	"testing"

	"gridproxy/integration/env/need"
)

// needIPVS skips a test on a kernel without IPVS.
func needIPVS(t *testing.T) {
	t.Helper()
	need.IPTables(t)
	need.Tools(t, "run `apt-get install ipset ipvsadm`", "ipset", "ipvsadm")
	need.IPVS(t)
}

// eachVariant runs a test with both kinds of iptables, one after the other: they share one
// emulated processor.
func eachVariant(t *testing.T, test func(*testing.T, string)) {
	t.Helper()
	needIPVS(t)
	for _, variant := range []string{"nft", "legacy"} {
		t.Run(variant, func(t *testing.T) { test(t, variant) })
	}
}
