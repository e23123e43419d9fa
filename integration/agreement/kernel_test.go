package agreement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/need"
	"gridproxy/rules/iptables"
	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/netfilter/trace"
)

const (
	envKernelClusters     = "GRIDPROXY_AGREEMENT_KERNEL_CLUSTERS" // else 50
	defaultKernelClusters = 50
	packetsPerFamily      = 120 // of each Cluster, at the most
)

// TestKernelWalk: in IPVS mode a real kernel does with the first packet of a connection what
// the walk says, for packets of every kind of source to every kind of Frontend.
func TestKernelWalk(t *testing.T) {
	need.IPVS(t)
	unlimitICMP(t)
	seed, first, last := drawn(t, envKernelClusters, defaultKernelClusters)
	seen := map[string]int{}
	begun := time.Now()
	for n := first; n < last && !t.Failed(); n++ {
		c := Draw(seed, n)
		if err := onStage(c, func(s *stage) error { return checkKernel(t, s, c, seen) }); err != nil {
			t.Fatalf("seed %d, cluster %d: %v", seed, n, err)
		}
	}
	t.Logf("%d clusters in %v", last-first, time.Since(begun).Round(time.Second))
	for _, kind := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("  %8d packets: %s", seen[kind], kind)
	}
	if last-first >= defaultKernelClusters {
		wantEnds(t, seen, 100)
	}
}

// unlimitICMP lets the kernel tell of every refusal. Kernels before 6.12 may have one limit for the
// whole machine, which must be a guest; the others have one for each namespace (see stage.build).
func unlimitICMP(t *testing.T) {
	t.Helper()
	if os.Getenv("GRIDPROXY_GUEST") == "" {
		t.Skip("SKIPPED: the test changes a sysctl of the whole machine: run `make test SUITES='ipvs-*'`, which boots another one")
	}
	if err := setICMPLimits(); err != nil {
		t.Fatal(err)
	}
}

// witness notes, by their source port, the packets that came through all of filter and IPVS: those
// that are delivered on the node, and those that leave it. No process listens on the stage, so
// what is delivered would be answered by a reset, which makes the kernel forget the connection.
const witness = `table inet stage {
	set through { type inet_service; flags dynamic; size 65535; }
	chain in { type filter hook input priority 300; meta l4proto { tcp, udp, sctp } ct direction original add @through { ct original proto-src }; }
	chain post { type filter hook postrouting priority 50; oifname != "lo" meta l4proto { tcp, udp, sctp } ct direction original add @through { ct original proto-src }; }
	chain out { type filter hook output priority raw; tcp flags & rst == rst drop; }
}
`

func nft(input string, args ...string) ([]byte, error) {
	cmd := exec.Command("nft", args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("running %v: %w: %s", cmd, err, exit.Stderr)
	}
	return out, err
}

// witnessed are the numbers of the packets that came through.
func witnessed() (map[int]bool, error) {
	var listing struct {
		NFTables []struct {
			Set struct{ Elem []int }
		}
	}
	out, err := nft("", "-j", "list", "set", "inet", "stage", "through")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(out, &listing); err != nil {
		return nil, fmt.Errorf("reading what nft prints: %w", err)
	}
	through := map[int]bool{}
	for _, object := range listing.NFTables {
		for _, port := range object.Set.Elem {
			through[port-firstPort] = true
		}
	}
	return through, nil
}

// program makes the stage's kernel enforce a Ruleset, as the daemon would.
func program(m *modes) error {
	if _, err := nft(witness, "-f", "-"); err != nil {
		return err
	}
	tables, err := iptables.New(context.Background(), iptables.Config{Variant: netfilter.VariantNFT, MasqueradeBit: 14, IPVS: true})
	if err != nil {
		return fmt.Errorf("opening iptables: %w", err)
	}
	backend, err := ipvs.New(context.Background(), ipvs.BackendConfig{Config: ipvs.Config{Scheduler: "rr", Exclude: m.exclude}, Tables: tables})
	if err != nil {
		return fmt.Errorf("opening IPVS: %w", err)
	}
	if _, err := backend.Sync(context.Background(), m.ruleset, false); err != nil {
		return fmt.Errorf("syncing: %w", err)
	}
	return nil
}

// sent is a packet that was put on the stage, known by its source port.
type sent struct {
	number int
	flow   Flow
	ends   []trace.End // what the walk says
	path   trace.Outcome
	got    trace.End
}

// checkKernel sends packets and holds what became of them against the walk.
func checkKernel(t *testing.T, s *stage, c Cluster, seen map[string]int) error {
	m, err := spellModes(c, spelling())
	if err != nil {
		return err
	}
	if err := program(m); err != nil {
		return err
	}
	all := choose(m)
	if len(all) == 0 {
		return nil // a Cluster may have no Frontend that a packet can reach
	}
	misfits, err := try(s, c, all, seen)
	used := len(all)
	for range tries - 1 {
		if err != nil || len(misfits) == 0 || wrong(misfits) >= 0 {
			break
		}
		p := misfits[0]
		t.Logf("cluster %d of seed %d, to be sent once more: %d packets, as %v, which was: %s %v", c.Number, c.Seed, len(misfits), p.flow, p.got.Verdict, p.got.Dst)
		misfits = renumbered(misfits, used)
		used += 10 + len(misfits)
		misfits, err = try(s, c, misfits, seen)
	}
	if err == nil && len(misfits) > 0 {
		p := misfits[max(0, wrong(misfits))]
		t.Errorf("cluster %d of seed %d: %v\n  the kernel: %s %v masquerade=%t\n  the walk:\n%s%s",
			c.Number, c.Seed, p.flow, p.got.Verdict, p.got.Dst, p.got.Masquerade, indent(describe(p.path)), c.Manifests())
	}
	return err
}

// try sends packets, and returns those that ended otherwise than the walk says.
func try(s *stage, c Cluster, all []sent, seen map[string]int) ([]sent, error) {
	got, err := deliver(s, c, all, all)
	if err != nil {
		return nil, err
	}
	var misfits []sent
	for _, p := range all {
		p.got = endOf(got, p)
		if !p.may(p.got) {
			misfits = append(misfits, p)
			continue
		}
		seen[kindOf(p.flow, p.got)]++
	}
	return misfits, nil
}

// tries is how often a packet may be sent that ends otherwise than the walk says, by chance. To
// masquerade takes a random port, which may be the old one; and no kernel promises to tell of every
// refusal. Whatever else differs fails at once.
const tries = 8

// renumbered are packets that are sent once more.
func renumbered(all []sent, used int) []sent {
	for i := range all {
		all[i].number = used + 10 + i
	}
	return all
}

// byChance reports whether a misfit may be one that says nothing of the rules: a refusal that was
// not reported to the sender, or a masquerade that kept the port.
func (p sent) byChance() bool {
	return slices.ContainsFunc(p.ends, func(e trace.End) bool {
		untold := e.Verdict == trace.Rejected && p.got.Verdict == trace.Dropped
		unseen := e.Masquerade && e.Verdict == p.got.Verdict && e.Dst == p.got.Dst
		return untold || unseen
	})
}

// wrong is the index of the first misfit that no chance explains, or -1.
func wrong(misfits []sent) int {
	return slices.IndexFunc(misfits, func(p sent) bool { return !p.byChance() })
}

// may reports whether an end is one of the walk's.
func (p sent) may(end trace.End) bool {
	return slices.ContainsFunc(p.ends, func(e trace.End) bool {
		return e == end || e.Verdict == end.Verdict && end.Verdict != trace.Accepted
	})
}

// firstPort is the source port of the first packet.
const firstPort = 2000

// choose takes some of the Cluster's packets that can exist, as many as there are, up to
// half of them, of those that reach an endpoint: they are few.
func choose(m *modes) []sent {
	tracer := ipvs.NewTracer(m.state)
	random := rand.New(rand.NewPCG(m.cluster.Seed, m.cluster.Number))
	var all []sent
	for family := range m.skeleton {
		flows := slices.DeleteFunc(m.flows(family), func(f Flow) bool {
			return !m.facts.comparable(f.Packet) || !m.possible(f.Packet)
		})
		random.Shuffle(len(flows), func(i, j int) { flows[i], flows[j] = flows[j], flows[i] })
		var served, others []sent
		for _, f := range flows {
			path := tracer.Trace(m.skeleton[family], f.Packet)
			p := sent{flow: f, ends: endsOf(path), path: path}
			if slices.ContainsFunc(p.ends, func(e trace.End) bool { return strings.HasPrefix(kindOf(f, e), "endpoint") }) {
				served = append(served, p)
			} else {
				others = append(others, p)
			}
		}
		served = served[:min(len(served), packetsPerFamily/2)]
		all = append(append(all, served...), others[:min(len(others), packetsPerFamily-len(served))]...)
	}
	for i := range all {
		all[i].number = i
	}
	return all
}

// sendAll puts packets on the stage. Those without a source get the one that the kernel
// gives to a process that did not choose any; to an address of the link that is this very
// address, which is what the walk takes for granted.
func sendAll(s *stage, all []sent) error {
	for _, p := range all {
		at := p.flow.Packet
		if !at.Src.IsValid() {
			var err error
			if at.Src, err = chosenSource(at.Dst); err != nil {
				return err
			}
			if at.Src != at.Dst {
				return fmt.Errorf("%v: the kernel chose %v as the source", p.flow, at.Src)
			}
		}
		src, dst := netip.AddrPortFrom(at.Src, uint16(firstPort+p.number)), netip.AddrPortFrom(at.Dst, at.DstPort)
		if err := s.put(at.InInterface, packet(src, dst, at.Proto)); err != nil {
			return fmt.Errorf("%v: %w", p.flow, err)
		}
	}
	return nil
}

// lastOnes returns packets that match no rule, through each link and from the node: once they have
// come through, all before them have.
func lastOnes(c Cluster, number int) []sent {
	var all []sent
	for i, device := range []string{uplinkDev, podDevice(c), ""} {
		p := trace.Packet{Src: netip.MustParseAddr("192.0.2.77"), Dst: netip.MustParseAddr("192.0.2.78"), Proto: netfilter.UDP, DstPort: unservedPort, InInterface: device}
		if device == "" {
			p.Src = netip.MustParseAddr("192.168.0.11")
		}
		all = append(all, sent{number: number + i, flow: Flow{From: "the last packet", To: "nobody", Packet: p}})
	}
	return all
}

// possible reports whether routing lets a packet exist at all: a walk knows of no martians.
// Nor does it know that IPVS sends nothing with a loopback source to another machine.
func (m *modes) possible(p trace.Packet) bool {
	routed := m.ruleset.NodePorts.Localhost // IPv4 loopback leaves the machine and comes in only then
	if p.Src.IsValid() && p.Src.IsLoopback() && !p.Dst.IsLoopback() {
		_, served := m.state.Servers[ipvs.ServerKey{Addr: netip.AddrPortFrom(p.Dst, p.DstPort), Proto: p.Proto}]
		return p.Src.Is4() && routed && !served
	}
	if p.Dst.IsLoopback() && !p.FromNode {
		return p.Dst.Is4() && routed
	}
	return true
}

// deliver sends packets, then the last ones, and returns what observe finds: it waits until the
// walked packets are as the walk says, or until nothing changes any more.
func deliver(s *stage, c Cluster, all, walked []sent) (map[int]trace.End, error) {
	last := lastOnes(c, all[len(all)-1].number+1)
	if err := sendAll(s, slices.Concat(all, last)); err != nil {
		return nil, err
	}
	return observe(s, walked, last)
}

// observe is what became of the packets, by their number; what is not in it was dropped. It
// returns when all is as the walk says, or when nothing changes any more.
func observe(s *stage, all, last []sent) (map[int]trace.End, error) {
	refused := map[int]bool{}
	deadline := time.Now().Add(20 * time.Second)
	for {
		for _, about := range s.refusals() {
			if port, _, ok := sourcePort(about); ok {
				refused[int(port)-firstPort] = true
			}
		}
		got, err := accepted()
		if err != nil {
			return nil, err
		}
		for i := range refused {
			if _, found := got[i]; !found {
				got[i] = trace.End{Verdict: trace.Rejected}
			}
		}
		late := time.Now().After(deadline)
		done := !slices.ContainsFunc(last, func(p sent) bool { return got[p.number].Verdict != trace.Accepted })
		switch {
		case done && (late || asWalked(all, got)):
			return got, nil
		case late:
			return nil, fmt.Errorf("the last packets did not come through within 20 s: %v", got)
		case done:
			deadline = deadline.Add(-time.Second) // what is on its way takes no time any more
		}
		// real time: no process reports that the kernel has dropped a packet
		time.Sleep(10 * time.Millisecond)
	}
}

func asWalked(all []sent, got map[int]trace.End) bool {
	return !slices.ContainsFunc(all, func(p sent) bool { return !p.may(endOf(got, p)) })
}

// endOf returns what became of one packet. The last destination of a refused or dropped packet is
// not observed: endOf returns the one that it was sent to.
func endOf(got map[int]trace.End, p sent) trace.End {
	end, found := got[p.number]
	if !found {
		end.Verdict = trace.Dropped
	}
	if end.Verdict != trace.Accepted {
		end.Dst = netip.AddrPortFrom(p.flow.Packet.Dst, p.flow.Packet.DstPort)
	}
	return end
}

// accepted are the packets that came through, by their number: where they went, and whether
// with another source.
func accepted() (map[int]trace.End, error) {
	through, err := witnessed()
	if err != nil {
		return nil, err
	}
	all, err := connections()
	maps.DeleteFunc(all, func(i int, _ trace.End) bool { return !through[i] })
	return all, err
}

// connections are the packets that made one, by their number. They are read as the kernel
// prints them: over netlink the library does not read the ports of SCTP.
func connections() (map[int]trace.End, error) {
	text, err := os.ReadFile("/proc/thread-self/net/nf_conntrack")
	if err != nil {
		return nil, fmt.Errorf("listing connections: %w", err)
	}
	all := map[int]trace.End{}
	for line := range strings.Lines(string(text)) {
		// Each of the four comes twice: of the packet, then of its answer.
		var of = map[string][]string{}
		for _, word := range strings.Fields(line) {
			if name, value, ok := strings.Cut(word, "="); ok {
				of[name] = append(of[name], value)
			}
		}
		if len(of["sport"]) < 2 {
			continue // of ICMP
		}
		number, _ := strconv.Atoi(of["sport"][0])
		to, err := netip.ParseAddr(of["src"][1])
		if err != nil {
			return nil, fmt.Errorf("reading the connection %q: %w", line, err)
		}
		port, _ := strconv.Atoi(of["sport"][1])
		all[number-firstPort] = trace.End{
			Verdict: trace.Accepted, Dst: netip.AddrPortFrom(to, uint16(port)),
			// What has the node's address already gets another port, almost always.
			Masquerade: of["dst"][1] != of["src"][0] || of["dport"][1] != of["sport"][0],
		}
	}
	return all, nil
}
