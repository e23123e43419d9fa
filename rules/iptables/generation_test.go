package iptables

import (
	"fmt"
	"net"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/rules/iptables/render"
)

// The watermark relies on the kernel counting committed transactions, but not reads and refusals.
func TestGenerationCountsCommits(t *testing.T) {
	private(t)
	run(t, "iptables-nft -t nat -N A") // the tables exist from here on
	for _, tc := range []struct {
		do   string
		want uint32
	}{
		{"iptables-nft-save; ip6tables-nft-save; iptables-nft -t nat -C PREROUTING -j A; true", 0},
		{"iptables-nft -t nat -A A -j RETURN", 1},
		{"iptables-nft -t nat -I PREROUTING -j A", 1},
		{`printf '*filter\n:B - [0:0]\nCOMMIT\n*nat\n:B - [0:0]\n-A B -j A\nCOMMIT\n' | iptables-nft-restore --noflush`, 2},
		{`printf '*nat\n-D A -j DROP\nCOMMIT\n' | iptables-nft-restore --noflush 2>&1; true`, 0},
		{"ip6tables-nft -t filter -N C", 1},
		{"iptables-legacy -t nat -N D", 0},
	} {
		before, err := generation()
		if err != nil {
			t.Fatal(err)
		}
		run(t, tc.do)
		after, err := generation()
		if err != nil || after-before != tc.want {
			t.Errorf("%s: the generation went from %d to %d, want %d more (%v)", tc.do, before, after, tc.want, err)
		}
	}
}

func TestWatermark(t *testing.T) {
	known := watermark{gen: 7, known: true}
	for _, tc := range []struct {
		from                   watermark
		before, after, commits uint32
		want                   watermark
	}{
		{known, 7, 9, 2, watermark{9, true}},
		{known, 7, 10, 2, watermark{}}, // another process committed in between
		{known, 8, 10, 2, watermark{}}, // another process committed before
		{watermark{}, 0, 2, 2, watermark{}},
		{watermark{^uint32(0), true}, ^uint32(0), 1, 2, watermark{1, true}},
	} {
		if got := tc.from.advance(tc.before, tc.after, tc.commits); got != tc.want {
			t.Errorf("%+v.advance(%d, %d, %d) = %+v, want %+v", tc.from, tc.before, tc.after, tc.commits, got, tc.want)
		}
	}
	if (watermark{}).holds(0) {
		t.Error("the zero watermark holds at generation 0")
	}
}

// The nfacct objects that kube-proxy's rules name are created once, kept, and read.
func TestCounters(t *testing.T) {
	private(t)
	err := ensureAcct()
	need.That(t, err == nil, fmt.Sprintf("this kernel has no nfacct: %v", err))
	run(t, "iptables-nft -A OUTPUT -p udp -m nfacct --nfacct-name "+render.AcctInvalidDropped)
	packets := sendLoopback(t)
	if err := ensureAcct(); err != nil { // does not reset the counters
		t.Fatal(err)
	}
	c, err := ReadCounters()
	if want := (Counters{InvalidDropped: packets}); err != nil || packets == 0 || c != want {
		t.Fatalf("got %+v, %v; want %+v", c, err, want)
	}
}

// sendLoopback sends UDP packets without a listener within the test's namespace, and returns their
// number.
func sendLoopback(t *testing.T) (packets uint64) {
	t.Helper()
	run(t, "ip link set lo up")
	conn, err := net.Dial("udp4", "127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 4 {
		if _, err := conn.Write([]byte("x")); err == nil { // otherwise it reports the one before as refused
			packets++
		}
	}
	return packets
}
