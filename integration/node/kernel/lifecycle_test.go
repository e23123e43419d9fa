package kernel

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"
)

// Whether gridproxy is killed or asked to end, its rules stay in force while it is away,
// and coming back changes nothing: not one connection fails, and an open one goes on. What
// changed meanwhile takes effect when it is back.
func TestRestart(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-3", "gz-2")
		s := netns.NewClosedService("restart", 110)
		w.Serve(s, w.endpoints("bj-1", "bj-3", "gz-2")...)
		w.run([]string{"bj-1"}, detect()...)
		from := w.Client("bj-1").Namespace
		unit := w.endpoints("bj-1", "bj-3")
		client := &traffic.Client{Who: traffic.OfLab}
		c := client.CallInTurn(traffic.Way{From: from, To: netns.VIP(netns.IPv4, 110)}, traffic.Way{From: from, To: netns.VIP(netns.IPv6, 110)})
		defer c.End()
		more := func() {
			w.Must(c.More(wait.Usual.Context(w.t), 50))
		}
		open := w.dial(from, netns.VIP(netns.IPv4, 110))
		ctx, cancel := context.WithTimeout(t.Context(), answerDeadline)
		defer cancel()
		pod, err := open.Ask(ctx)
		w.Must(err)
		for _, kill := range []bool{true, false, true, false} {
			more()
			w.Stop("bj-1", kill)
			more()
			w.run([]string{"bj-1"}, detect()...)
			more()
			w.still(open, pod)
		}
		c.End()
		if err := c.AnsweredBy(netns.Names(unit)...); err != nil {
			t.Error(err)
		}

		w.Stop("bj-1", false)
		w.Serve(s, w.endpoints("bj-3", "gz-2")...)
		w.run([]string{"bj-1"}, detect()...)
		for _, f := range netns.Families() {
			w.reaches(from, "tcp", netns.VIP(f, 110), w.Endpoint("bj-3"))
		}
	})
}

// Cleanup takes away all that is ours and leaves everything else as it was, byte for byte:
// others' rules, the kubelet's chains, and KUBE-FIREWALL, which is shared with it. It can
// be repeated.
func TestCleanup(t *testing.T) {
	const kubelet = "*mangle\n:KUBE-IPTABLES-HINT - [0:0]\n:KUBE-KUBELET-CANARY - [0:0]\n-A PREROUTING -j MARK --set-xmark 0x1/0x1\nCOMMIT\n" +
		"*nat\n:KUBE-KUBELET-CANARY - [0:0]\nCOMMIT\n*filter\n:KUBE-KUBELET-CANARY - [0:0]\nCOMMIT\n"
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "gz-2")
		w.addForeign("bj-1")
		before := map[netns.Family][]string{}
		for _, f := range netns.Families() {
			w.restore("bj-1", f, kubelet)
			before[f] = w.Rules("bj-1", f)
		}
		var state []string
		if b.mode == modeIPVS {
			w.addForeignIPVS("bj-1")
			state = w.IPVSState("bj-1")
		}
		s := newExposed("cleanup", 120)
		w.Serve(s, w.endpoints("bj-1", "gz-2")...)
		w.Serve(netns.NewClosedService("elsewhere", 121), w.endpoints("gz-2")...)
		w.run([]string{"bj-1"}, detect()...)
		for _, f := range netns.Families() {
			w.reaches(w.Client("bj-1").Namespace, "tcp", netns.VIP(f, 120), w.Endpoint("bj-1"))
		}
		w.Stop("bj-1", false)
		for range 2 {
			w.Command("bj-1", "", w.Program, "cleanup", "--iptables-variant", b.variant)
			for _, f := range netns.Families() {
				after := slices.DeleteFunc(w.Rules("bj-1", f), func(line string) bool { return strings.Contains(line, "KUBE-FIREWALL") })
				if !slices.Equal(after, before[f]) {
					t.Errorf("%s, before:\n%s\nafter:\n%s", f, strings.Join(before[f], "\n"), strings.Join(after, "\n"))
				}
			}
			if b.mode == modeIPVS {
				w.Must(netns.CompareLines(w.IPVSState("bj-1"), state))
			}
		}
		var shared []string
		for _, line := range w.Rules("bj-1", netns.IPv4) {
			if strings.Contains(line, "KUBE-FIREWALL") {
				shared = append(shared, line)
			}
		}
		if len(shared) != 4 { // the chain, its rule, its two jumps
			t.Errorf("of KUBE-FIREWALL, which is the kubelet's too, %q are left", shared)
		}
	})
}

// A node that the manifests do not know serves what is open and refuses what is closed,
// says so once, and follows when its Node object appears.
func TestUnknownNode(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-3")
		closed, open := netns.NewClosedService("closed", 130), netns.NewClosedService("open", 131)
		netns.Confine(open, "")
		both := w.endpoints("bj-1", "bj-3")
		w.Serve(closed, both...)
		w.Serve(open, both...)
		known := w.Manifests.Nodes
		w.Manifests.Nodes = known[1:]
		w.run([]string{"bj-1"}, detect()...)
		from := w.Client("bj-1").Namespace
		for _, f := range netns.Families() {
			w.reaches(from, "tcp", netns.VIP(f, 131), both...)
			w.refused(from, "tcp", netns.VIP(f, 130))
		}
		if log := w.Daemons["bj-1"].Log().String(); strings.Count(log, "WARN") != 1 || !strings.Contains(log, "bj-1") {
			t.Errorf("the log does not warn once of the unknown node:\n%s", log)
		}
		w.Manifests.Nodes = known
		w.apply()
		for _, f := range netns.Families() {
			w.reaches(from, "tcp", netns.VIP(f, 130), both...)
			w.reaches(from, "udp", netns.VIP(f, 131), both...)
		}
	})
}

// An edit that cannot be read leaves the last good rules in force and is reported with the
// name of the file; once it is put right, it takes effect.
func TestBadEdit(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-3")
		s := netns.NewClosedService("edited", 140)
		w.Serve(s, w.Endpoint("bj-1"))
		w.run([]string{"bj-1"}, detect()...)
		from := w.Client("bj-1").Namespace
		for _, bad := range []string{
			"kind: Service\n  what: is this\n",
			"apiVersion: v1\nkind: Service\nmetadata:\n  name: edited\nspec:\n  clusterIP: 172.16.33.140\n  ports: [{port: 80000}]\n",
		} {
			path := filepath.Join(w.Dir, netns.ServicesFile)
			good, err := os.ReadFile(path)
			w.Must(err)
			reported := strings.Count(w.Daemons["bj-1"].Log().String(), netns.ServicesFile)
			w.Must(need.Replace(path, []byte(bad)))
			wait.Until(t, "the log names the file", func() error {
				return wait.Check(strings.Count(w.Daemons["bj-1"].Log().String(), netns.ServicesFile) != reported, "it does not")
			})
			for _, f := range netns.Families() {
				w.Must(w.who(w.t.Context(), from, "tcp", netns.VIP(f, 140), w.endpoints("bj-1")))
			}
			w.Must(need.Replace(path, good))
		}
		w.Serve(s, w.Endpoint("bj-3"))
		w.apply()
		for _, f := range netns.Families() {
			w.reaches(from, "tcp", netns.VIP(f, 140), w.Endpoint("bj-3"))
		}
	})
}

// On a machine without IPv6, IPv4 works as ever and no IPv6 rule is written.
func TestWithoutIPv6(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "gz-2")
		s := netns.NewClosedService("single", 170)
		w.Serve(s, w.endpoints("bj-1", "gz-2")...)
		w.Must(w.Lab.Node("bj-1").SetSysctl("ipv6.conf.all.disable_ipv6", "1"))
		w.run([]string{"bj-1"}, detect()...)
		for _, network := range networks() {
			w.reaches(w.Client("bj-1").Namespace, network, netns.VIP(netns.IPv4, 170), w.Endpoint("bj-1"))
		}
		if save := w.Rules("bj-1", netns.IPv6); slices.ContainsFunc(save, func(line string) bool { return strings.Contains(line, "KUBE-") }) {
			t.Errorf("IPv6 rules were written:\n%s", strings.Join(save, "\n"))
		}
	})
}
