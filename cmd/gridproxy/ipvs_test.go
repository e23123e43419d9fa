package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gridproxy/cmd/command"
	"gridproxy/integration/env/need"
	"gridproxy/topology"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// The manual's Service and its endpoints as /proc/net/ip_vs prints them.
const (
	serverLine = "TCP  AC1021E7:0050 " // 172.16.33.231:80
	bj1Line    = "-> 0A000046:1F90"    // 10.0.0.70:8080
	movedLine  = "-> 0A000063:1F90"    // 10.0.0.99:8080
)

// virtualServers is what the kernel lists in the namespace.
func (p *process) virtualServers(t *testing.T) string {
	t.Helper()
	var text []byte
	within(t, p.ns, func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/ip_vs")
		return err
	})
	return string(text)
}

// serversLink is the link of mode ipvs.
const serversLink = "kube-ipvs0"

// leftovers are the link and the sets of mode ipvs.
func leftovers(t *testing.T, ns netns.NsHandle) (names []string) {
	t.Helper()
	within(t, ns, func() error {
		links, err := netlink.LinkList()
		if err != nil {
			return err
		}
		for _, l := range links {
			if l.Attrs().Name == serversLink {
				names = append(names, serversLink)
			}
		}
		sets, err := netlink.IpsetListAll()
		for _, s := range sets {
			names = append(names, s.SetName)
		}
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return err
	})
	return names
}

// TestModes runs the daemon in mode ipvs, then in mode iptables, then in mode ipvs again.
func TestModes(t *testing.T) {
	need.IPVS(t)
	need.IPTables(t)
	manifests := clusterFile(t)
	args := []string{"--node-name=bj-3", "--manifests=" + manifests, "--cluster-cidr=10.0.0.0/16"}
	d := start(t, append(args, "--proxy-mode=ipvs")...).ready(t)
	if list := d.virtualServers(t); !strings.Contains(list, serverLine+"rr") || !strings.Contains(list, bj1Line) || strings.Count(list, "->") != 2 {
		t.Errorf("virtual servers of bj-3:\n%s", list)
	}
	if a := d.get("/proxyMode", 10249); a.body != "ipvs" {
		t.Errorf("/proxyMode: %q", a.body)
	}
	var metrics string
	d.until(t, "the run to be counted", func() bool { // which is after it is ready
		metrics = d.get("/metrics", 10249).body
		return strings.Contains(metrics, `gridproxy_ipvs_netlink_messages_total{object="address"} 1`)
	})
	for _, want := range []string{
		"gridproxy_ipvs_virtual_servers 1\n", "gridproxy_ipvs_real_servers 1\n", "gridproxy_ipvs_draining_real_servers 0\n",
		"gridproxy_ipvs_degraded 0\n",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %q", want)
		}
	}
	write(t, manifests, withScheduler("10.0.0.99", "lc"))
	d.until(t, "another endpoint and scheduler", func() bool {
		list := d.virtualServers(t)
		return strings.Contains(list, serverLine+"lc") && strings.Contains(list, movedLine) && !strings.Contains(list, bj1Line)
	})
	write(t, manifests, withScheduler("10.0.0.99", "round-robin"))
	d.until(t, "the mistake to be reported", func() bool { return d.logged(`asks for scheduler \"round-robin\"`) == 1 })
	d.until(t, "the scheduler of the flag in its place", func() bool { return strings.Contains(d.virtualServers(t), serverLine+"rr") })
	if code := d.stop(t, syscall.SIGTERM); code != command.OK || !strings.Contains(d.virtualServers(t), movedLine) {
		t.Errorf("code %d after SIGTERM; virtual servers:\n%s", code, d.virtualServers(t))
	}

	tables := startIn(t, d.ns, args...)
	tables.until(t, "nothing of mode ipvs to be left", func() bool {
		return len(leftovers(t, d.ns)) == 0 && tables.logged("nothing is left of mode ipvs") == 1
	})
	if rules := tables.rules(t); tables.logged("mode ipvs has left") != 1 || !strings.Contains(rules, "10.0.0.99:8080") || strings.Contains(rules, "IPVS") || strings.Contains(tables.virtualServers(t), serverLine) {
		t.Errorf("after the change of mode, virtual servers:\n%s\nrules:\n%s", tables.virtualServers(t), rules)
	}
	if a := tables.get("/proxyMode", 10249); a.body != "iptables" {
		t.Errorf("/proxyMode: %q", a.body)
	}
	tables.stop(t, syscall.SIGTERM)

	back := startIn(t, d.ns, append(args, "--proxy-mode=ipvs")...).ready(t)
	if rules := back.rules(t); !strings.Contains(back.virtualServers(t), movedLine) || strings.Contains(rules, "10.0.0.99:8080") {
		t.Errorf("back in mode ipvs, virtual servers:\n%s\nrules:\n%s", back.virtualServers(t), rules)
	}
	back.stop(t, syscall.SIGTERM)
	back.cleanup(t)
	if left := leftovers(t, d.ns); len(left) > 0 || strings.Contains(back.rules(t), "KUBE-SERVICES") || strings.Contains(back.virtualServers(t), serverLine) {
		t.Errorf("after cleanup: %v, rules:\n%s", left, back.rules(t))
	}
	back.cleanup(t)
}

// TestRenderedPartsLoad: the tools accept what render prints, and then print the same of the
// kernel, line by line.
func TestRenderedPartsLoad(t *testing.T) {
	need.IPVS(t)
	need.IPTables(t)
	need.Tools(t, "run `apt-get install ipvsadm ipset iproute2`", "ipvsadm", "ipset", "ip")
	script, err := txtar.ParseFile("testdata/script/ipvs_kinds.txtar")
	if err != nil {
		t.Fatal(err)
	}
	manifests := filepath.Join(t.TempDir(), "cluster.yaml")
	for _, f := range script.Files {
		if f.Name == "cluster.yaml" {
			write(t, manifests, string(f.Data))
		}
	}
	for family, prefix := range map[string]string{"ipv4": "ip", "ipv6": "ip6"} {
		ns := newNamespace(t)
		for _, part := range []struct {
			name       string
			load, save []string
			lines      string // how the lines start that are compared
		}{
			{"ipset", []string{"ipset", "restore"}, []string{"ipset", "save"}, "add "},
			{"addresses", []string{"ip", "-batch", "-"}, nil, ""},
			{"ipvs", []string{"ipvsadm", "--restore"}, []string{"ipvsadm", "--save", "--numeric"}, "-"},
			{"iptables", []string{prefix + "tables-nft-restore"}, []string{prefix + "tables-nft-save"}, "-A "},
		} {
			text := output(t, ns, "", os.Args[0], "render", "--proxy-mode=ipvs", "--part="+part.name, "--ip-family="+family,
				"--manifests="+manifests, "--node-name=a", "--cluster-cidr=10.244.0.0/16,fd00:244::/56")
			output(t, ns, text, part.load...)
			if part.save == nil {
				continue
			}
			want, got := startingWith(text, part.lines), startingWith(output(t, ns, "", part.save...), part.lines)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, part %s (-printed +kernel):\n%s", family, part.name, diff)
			}
		}
	}
}

// startingWith are the lines with a prefix, sorted.
func startingWith(text, start string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, start) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// output runs a program in the namespace and returns what it prints.
func output(t *testing.T, ns netns.NsHandle, input string, args ...string) string {
	t.Helper()
	var out, problems bytes.Buffer
	within(t, ns, func() error {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), asGridproxy+"=1")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &problems
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, problems.String())
		}
		return nil
	})
	return out.String()
}

func withScheduler(address, name string) string {
	return strings.Replace(cluster(address, "beijing"), "annotations: {", "annotations: {"+topology.AnnotationScheduler+": "+name+", ", 1)
}
