package kernel

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
)

// caller asks the same frontends again and again, each time on a new connection, until it
// is told to stop.
type caller struct {
	stop   context.CancelFunc
	done   sync.WaitGroup
	mu     sync.Mutex
	asked  int
	errors []error
}

// call starts asking: over TCP, both families, and only some Pods may answer.
func (w *world) call(from *netns.Namespace, last byte, want []*netns.Pod) *caller {
	ctx, stop := context.WithCancel(w.t.Context())
	c := &caller{stop: stop}
	w.t.Cleanup(c.end)
	for _, f := range netns.Families() {
		c.done.Go(func() {
			for ctx.Err() == nil {
				a, err := ask(w.t.Context(), from, "tcp", vip(f, last))
				if err == nil && !slices.Contains(names(want), a.Pod) {
					err = fmt.Errorf("%s answered, want one of %s", a.Pod, names(want))
				}
				c.mu.Lock()
				c.asked++
				if err != nil {
					c.errors = append(c.errors, err)
				}
				c.mu.Unlock()
			}
		})
	}
	return c
}

func (c *caller) end() {
	c.stop()
	c.done.Wait()
}

// more waits until the caller has asked n times more.
func (w *world) more(c *caller, n int) {
	w.t.Helper()
	c.mu.Lock()
	goal := c.asked + n
	c.mu.Unlock()
	wait.Until(w.t, fmt.Sprintf("the caller asks %d times more", n), func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		return wait.Check(c.asked >= goal, "asked %d times, want %d", c.asked, goal)
	})
}

// Whether gridproxy is killed or asked to end, its rules stay in force while it is away,
// and coming back changes nothing: not one connection fails, and an open one goes on. What
// changed meanwhile takes effect when it is back.
func TestRestart(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-3", "gz-2")
		s := newService("restart", 110)
		w.Serve(s, w.endpoints("bj-1", "bj-3", "gz-2")...)
		w.run([]string{"bj-1"}, detect()...)
		from := w.Client("bj-1").Namespace
		unit := w.endpoints("bj-1", "bj-3")
		c := w.call(from, 110, unit)
		open := w.newStream(from, vip(netns.IPv4, 110))
		pod, err := open.ask()
		w.must(err)
		for _, kill := range []bool{true, false, true, false} {
			w.more(c, 100)
			w.stop("bj-1", kill)
			w.more(c, 100)
			w.run([]string{"bj-1"}, detect()...)
			w.more(c, 100)
			w.still(open, pod)
		}
		c.end()
		if len(c.errors) > 0 {
			t.Errorf("%d of %d connections failed, the first: %v", len(c.errors), c.asked, c.errors[0])
		}
		t.Logf("%d connections, %d failed", c.asked, len(c.errors))

		w.stop("bj-1", false)
		w.Serve(s, w.endpoints("bj-3", "gz-2")...)
		w.run([]string{"bj-1"}, detect()...)
		for _, f := range netns.Families() {
			w.reaches(from, "tcp", vip(f, 110), w.endpoint("bj-3"))
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
			before[f] = w.save("bj-1", f)
		}
		var state []string
		if b.mode == modeIPVS {
			w.addForeignIPVS("bj-1")
			state = w.ipvsState("bj-1")
		}
		s := newService("cleanup", 120)
		expose(s, 120)
		w.Serve(s, w.endpoints("bj-1", "gz-2")...)
		w.Serve(newService("elsewhere", 121), w.endpoints("gz-2")...)
		w.run([]string{"bj-1"}, detect()...)
		for _, f := range netns.Families() {
			w.reaches(w.Client("bj-1").Namespace, "tcp", vip(f, 120), w.endpoint("bj-1"))
		}
		w.stop("bj-1", false)
		for range 2 {
			_, err := w.Lab.Node("bj-1").Run(wait.Usual.Context(t), nil, w.program, "cleanup", "--iptables-variant", b.variant)
			w.must(err)
			for _, f := range netns.Families() {
				after := slices.DeleteFunc(w.save("bj-1", f), func(line string) bool { return strings.Contains(line, "KUBE-FIREWALL") })
				if !slices.Equal(after, before[f]) {
					t.Errorf("%s, before:\n%s\nafter:\n%s", f, strings.Join(before[f], "\n"), strings.Join(after, "\n"))
				}
			}
			if b.mode == modeIPVS {
				w.must(sameRules(w.ipvsState("bj-1"), state))
			}
		}
		var shared []string
		for _, line := range w.save("bj-1", netns.IPv4) {
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
		closed, open := newService("closed", 130), newService("open", 131)
		netns.Confine(open, "")
		both := w.endpoints("bj-1", "bj-3")
		w.Serve(closed, both...)
		w.Serve(open, both...)
		known := w.Manifests.Nodes
		w.Manifests.Nodes = known[1:]
		w.run([]string{"bj-1"}, detect()...)
		from := w.Client("bj-1").Namespace
		for _, f := range netns.Families() {
			w.reaches(from, "tcp", vip(f, 131), both...)
			w.refused(from, "tcp", vip(f, 130))
		}
		if log := w.daemons["bj-1"].Log().String(); strings.Count(log, "WARN") != 1 || !strings.Contains(log, "bj-1") {
			t.Errorf("the log does not warn once of the unknown node:\n%s", log)
		}
		w.Manifests.Nodes = known
		w.apply()
		for _, f := range netns.Families() {
			w.reaches(from, "tcp", vip(f, 130), both...)
			w.reaches(from, "udp", vip(f, 131), both...)
		}
	})
}

// An edit that cannot be read leaves the last good rules in force and is reported with the
// name of the file; once it is put right, it takes effect.
func TestBadEdit(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-3")
		s := newService("edited", 140)
		w.Serve(s, w.endpoint("bj-1"))
		w.run([]string{"bj-1"}, detect()...)
		from := w.Client("bj-1").Namespace
		for _, bad := range []string{
			"kind: Service\n  what: is this\n",
			"apiVersion: v1\nkind: Service\nmetadata:\n  name: edited\nspec:\n  clusterIP: 172.16.33.140\n  ports: [{port: 80000}]\n",
		} {
			path := filepath.Join(w.Dir, netns.ServicesFile)
			good, err := os.ReadFile(path)
			w.must(err)
			reported := strings.Count(w.daemons["bj-1"].Log().String(), netns.ServicesFile)
			w.must(need.Replace(path, []byte(bad)))
			wait.Until(t, "the log names the file", func() error {
				return wait.Check(strings.Count(w.daemons["bj-1"].Log().String(), netns.ServicesFile) != reported, "it does not")
			})
			for _, f := range netns.Families() {
				w.must(w.who(w.t.Context(), from, "tcp", vip(f, 140), w.endpoints("bj-1")))
			}
			w.must(need.Replace(path, good))
		}
		w.Serve(s, w.endpoint("bj-3"))
		w.apply()
		for _, f := range netns.Families() {
			w.reaches(from, "tcp", vip(f, 140), w.endpoint("bj-3"))
		}
	})
}

// On a machine without IPv6, IPv4 works as ever and no IPv6 rule is written.
func TestWithoutIPv6(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "gz-2")
		s := newService("single", 170)
		w.Serve(s, w.endpoints("bj-1", "gz-2")...)
		w.must(w.Lab.Node("bj-1").SetSysctl("ipv6.conf.all.disable_ipv6", "1"))
		w.run([]string{"bj-1"}, detect()...)
		for _, network := range networks() {
			w.reaches(w.Client("bj-1").Namespace, network, vip(netns.IPv4, 170), w.endpoint("bj-1"))
		}
		if save := w.save("bj-1", netns.IPv6); slices.ContainsFunc(save, func(line string) bool { return strings.Contains(line, "KUBE-") }) {
			t.Errorf("IPv6 rules were written:\n%s", strings.Join(save, "\n"))
		}
	})
}
