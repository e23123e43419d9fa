package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	"github.com/google/go-cmp/cmp"
)

// TestShadow looks before it takes over: beside kube-proxy's rules a shadow and `gridproxy diff` write
// nothing, and name exactly the Services whose rules the daemon then changes.
func TestShadow(t *testing.T) {
	eachVariant(t, func(t *testing.T, w *takenNode, binary string) {
		w.letKubeProxyWrite()
		written, sysctls := w.saves(), w.sysctls()
		if code, text := w.diff(binary); code != 0 || text != "" {
			t.Errorf("before anything is closed: code %d\n%s", code, text)
		}
		w.closeInAPI()
		tools := w.watchTools()
		w.shadow(binary, tools)
		code, text := w.diff(binary)
		if code != 1 {
			t.Errorf("code %d, want 1", code)
		}
		if writes := tools.writes(t); len(writes) > 0 {
			t.Errorf("the shadow ran %q", writes)
		}
		if diff := cmp.Diff(written, w.saves()); diff != "" {
			t.Errorf("the shadow changed the kernel (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(sysctls, w.sysctls()); diff != "" {
			t.Errorf("the shadow changed sysctls (-before +after):\n%s", diff)
		}

		w.run(binary, tools)
		changed := changedServices(written, w.saves())
		if diff := cmp.Diff(changed, namesIn(text)); diff != "" || len(changed) < 5 {
			t.Errorf("Services that changed, and those that the diff named (-changed +named):\n%s\n%s", diff, text)
		}
		t.Logf("%d lines of diff name %d Services", strings.Count(text, "\n"), len(changed))
		if code, text := w.diff(binary); code != 0 || text != "" {
			t.Errorf("after the take-over: code %d\n%s", code, text)
		}
	})
}

// shadow runs the daemon with --shadow until it has told what differs, and ends it.
func (w *takenNode) shadow(binary string, tools counters) {
	w.t.Helper()
	const port = 10349
	child := w.startDaemon("shadow", binary, []string{tools.path()}, "--shadow", "--healthz-bind-address=",
		fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", port), "--conntrack-tcp-be-liberal", "--conntrack-udp-timeout=7s")
	defer child.Stop(syscall.SIGTERM, 5*time.Second)
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
	must(w.t, child.WaitFor(wait.Usual.Context(w.t), func(ctx context.Context) error {
		page, err := w.node.Get(ctx, at, "/metrics")
		return errors.Join(err, wait.Check(page.Code == http.StatusOK && different.Match(page.Text), "/metrics of the shadow names no difference"))
	}))
}

var different = regexp.MustCompile(`gridproxy_shadow_services_different [1-9]`)

func (w *takenNode) flags() []string {
	w.t.Helper()
	return []string{
		"--node-name=" + here, "--kubeconfig=" + w.Kubeconfig(), "--cluster-cidr=" + netns.ClusterCIDRs(),
		"--iptables-variant=" + string(w.variant), "--conntrack-max-per-core=0", "--status-socket=",
	}
}

// diff is what `gridproxy diff` says on the node, without the line about no difference.
func (w *takenNode) diff(binary string) (code int, text string) {
	w.t.Helper()
	p, err := w.node.Start(binary, append([]string{"diff"}, w.flags()...)...)
	must(w.t, err)
	wait.Receive(w.t, "gridproxy diff ends", p.Done())
	return p.ExitCode(), strings.TrimSuffix(p.Log().String(), "no difference\n")
}

// sysctls are those that a daemon may write.
func (w *takenNode) sysctls() string {
	w.t.Helper()
	out, err := w.node.Run(w.ctx, nil, "sh", "-c", `grep -s . /proc/sys/net/netfilter/nf_conntrack_[mtu]* /proc/sys/net/ipv4/conf/*/* /proc/sys/net/bridge/*; true`)
	must(w.t, err)
	if !strings.Contains(string(out), "route_localnet") {
		w.t.Fatalf("no sysctls:\n%s", out)
	}
	return string(out)
}

// changedServices are those with a rule that came, went or changed.
func changedServices(before, after map[string]string) []string {
	names := map[string]struct{}{}
	for _, family := range families {
		old, now := chainsOf(before[family]), chainsOf(after[family])
		owner := owners(old)
		maps.Copy(owner, owners(now))
		for _, chain := range union(old, now) {
			changed := append(without(old[chain], now[chain]), without(now[chain], old[chain])...)
			for _, rule := range changed {
				name := owner[bare(chain)]
				if isShared(chain) {
					name = namedIn(rule)
				}
				names[name] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// namesIn are the Services in the lines that a unified diff adds or removes, or around them.
func namesIn(diff string) []string {
	names := map[string]struct{}{}
	for line := range strings.Lines(diff) {
		rule, isRule := strings.CutPrefix(line[1:], "-A ")
		chain, _, _ := strings.Cut(rule, " ")
		if isRule && (line[0] != ' ' || !isShared(chain)) && strings.Contains(rule, "default/") {
			names[namedIn(rule)] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
