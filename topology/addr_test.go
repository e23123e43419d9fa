package topology

import (
	"strings"
	"testing"

	netutils "k8s.io/utils/net"
)

// addressTexts are spellings that older API servers stored, and texts that none ever took.
var addressTexts = []string{
	"10.0.0.1", "172.30.0.041", "127.010.020.030", "0010.0.00.00001", "1.2.3.4.5", "1.2.3", "1..2.3", "-0.0.0.0", "0.0.0.-3",
	"256.0.0.1", "0256.0.0.1", "1.2.3.4 ", " 1.2.3.4", "0x10.0.0.1", "99999999999.1.1.1", "", ".", ":", "::", "::1", "fd00::1",
	"FD00::00001", "0:0:0:0:000000:ffff:127.1.2.3", "::ffff:10.0.0.1", "::ffff:010.000.0.01", "::ffff:0a00:0001", "::10.0.0.01",
	"fe80::1%eth0", "10.0.0.1%eth0", "1:2:3:4:5:6:7:8:9", "1::2::3", "a1:a2:a3:a4::b1:b2:b3:b4", "12345::", "abc",
}

// TestParseAddrLikeKubeProxy: an address is read if and only if kube-proxy reads it, and as the
// same.
func TestParseAddrLikeKubeProxy(t *testing.T) {
	for _, text := range addressTexts {
		want := "error"
		if ip := netutils.ParseIPSloppy(text); ip != nil {
			want = ip.String()
		}
		got := "error"
		if addr, err := ParseAddr(text); err == nil {
			got = addr.String()
		}
		if got != want {
			t.Errorf("ParseAddr(%q): got %s, want kube-proxy's %s", text, got, want)
		}
	}
}

// TestParsePrefixLikeKubeProxy: a CIDR is read if and only if kube-proxy reads it, and as the same.
func TestParsePrefixLikeKubeProxy(t *testing.T) {
	lengths := []string{"", "0", "00", "8", "08", "025", "24", "32", "33", "64", "90", "096", "104", "0120", "128", "129", "-1", "-0", "+8", "8 ", "255.0.0.0", "99999999"}
	for _, address := range addressTexts {
		for _, length := range lengths {
			text := address + "/" + length
			want := "error"
			// kube-proxy trims in front of its parser, and ParsePrefix does so itself.
			if _, network, err := netutils.ParseCIDRSloppy(strings.TrimSpace(text)); err == nil {
				want = network.String()
			}
			got := "error"
			if p, err := ParsePrefix(text); err == nil {
				got = p.String()
			}
			if got != want {
				t.Errorf("ParsePrefix(%q): got %s, want kube-proxy's %s", text, got, want)
			}
		}
	}
}
