package drain

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"
)

// weights returns the weights of the real servers behind an address over TCP, by real server.
func (w *world) weights(server netip.AddrPort) (map[netip.AddrPort]string, error) {
	w.t.Helper()
	found := map[netip.AddrPort]string{}
	for line := range strings.Lines(w.Command(here, "", "ipvsadm", "-Sn")) {
		// -a -t 172.16.33.10:80 -r 10.0.0.70:8080 -m -w 1
		words := strings.Fields(line)
		if len(words) < 8 || words[0] != "-a" || words[1] != "-t" || words[2] != server.String() {
			continue
		}
		real, err := netip.ParseAddrPort(words[4])
		if err != nil {
			return nil, fmt.Errorf("reading %q of ipvsadm: %w", line, err)
		}
		found[real] = words[7]
	}
	return found, nil
}

// weigh waits until a Pod's real servers of a Service have a weight; "" = they are gone.
func (w *world) weigh(pod *netns.Pod, ways []traffic.Way, want string) {
	w.t.Helper()
	for _, r := range ways {
		real := netip.AddrPortFrom(pod.Addr(netns.FamilyOf(r.To.Addr())), netns.EchoPort)
		wait.Until(w.t, fmt.Sprintf("%s of server %s has weight %q", real, r.To, want), func() error {
			all, err := w.weights(r.To)
			return errors.Join(err, wait.Check(all[real] == want, "it has %q (all: %v)", all[real], all))
		})
	}
}

// settles waits until what IPVS mode keeps is what it was once.
func (w *world) settles(want []string) {
	w.t.Helper()
	wait.Until(w.t, "IPVS is what it was once", func() error { return netns.CompareLines(w.IPVSState(here), want) })
}

// clean waits until nothing of IPVS mode is left.
func (w *world) clean() {
	w.t.Helper()
	w.settles(nil)
}

func (w *world) rules() (lines []string) {
	w.t.Helper()
	for _, f := range netns.Families() {
		for _, line := range w.Rules(here, f) {
			lines = append(lines, string(f)+" "+line)
		}
	}
	return lines
}

// noForeignSets says whether a set of kube-proxy's is left that gridproxy has no use for.
func (w *world) noForeignSets() error {
	for _, line := range w.IPVSState(here) {
		for _, foreign := range []string{"LOAD-BALANCER", "NODE-PORT", "HEALTH-CHECK"} {
			if strings.Contains(line, foreign) {
				return fmt.Errorf("kube-proxy's set is still there: %s", line)
			}
		}
	}
	return nil
}
