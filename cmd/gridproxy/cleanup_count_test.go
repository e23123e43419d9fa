package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gridproxy/cmd/command"
	"gridproxy/integration/env/need"

	"github.com/vishvananda/netns"
)

// inKernel is what a cleanup is about, in one network namespace.
type inKernel struct {
	text     string         // all of it
	counts   map[string]int // chains and rules, by "FAMILY TABLE chains" and "FAMILY TABLE rules"
	servers  int
	leftover []string // link and sets of mode ipvs
}

func readKernel(t *testing.T, ns netns.NsHandle) inKernel {
	t.Helper()
	k := inKernel{counts: map[string]int{}, leftover: leftovers(t, ns)}
	for family, tool := range map[string]string{"IPv4": "iptables-nft-save", "IPv6": "ip6tables-nft-save"} {
		table := ""
		for line := range strings.Lines(output(t, ns, "", tool)) {
			switch line[0] {
			case '#':
				continue
			case '*':
				table = strings.TrimSpace(line[1:])
			case ':':
				k.counts[family+" "+table+" chains"]++
			case '-':
				k.counts[family+" "+table+" rules"]++
			}
			k.text += regexp.MustCompile(`\[\d+:\d+\]`).ReplaceAllString(family+" "+line, "")
		}
	}
	lines := slices.Sorted(strings.Lines(k.text))
	servers := (&process{ns: ns}).virtualServersIfAny(t)
	k.servers = len(regexp.MustCompile(`(?m)^(TCP|UDP|SCTP) `).FindAllString(servers, -1))
	k.text = strings.Join(lines, "") + servers + fmt.Sprint(k.leftover) + output(t, ns, "", "ip", "-o", "address")
	return k
}

// virtualServersIfAny is virtualServers on a kernel that may have no IPVS.
func (p *process) virtualServersIfAny(t *testing.T) (text string) {
	t.Helper()
	within(t, p.ns, func() error {
		all, err := os.ReadFile("/proc/thread-self/net/ip_vs")
		if text = string(all); os.IsNotExist(err) {
			return nil
		}
		return err
	})
	return text
}

// removedLines are the lines that cleanup prints for before and after.
func removedLines(before, after inKernel) []string {
	var all []string
	for _, family := range []string{"IPv4", "IPv6"} {
		for _, table := range []string{"mangle", "nat", "filter"} {
			chains := before.counts[family+" "+table+" chains"] - after.counts[family+" "+table+" chains"]
			rules := before.counts[family+" "+table+" rules"] - after.counts[family+" "+table+" rules"]
			if chains > 0 {
				all = append(all, fmt.Sprintf("iptables-nft %s %s: removed: %d chains, %d rules", family, table, chains, rules))
			}
		}
	}
	if n := before.servers - after.servers; n > 0 {
		all = append(all, fmt.Sprintf("IPVS IPv4: removed: %d virtual servers, 1 addresses", n), "machine: removed: 1 link "+serversLink)
	}
	for family, kube := range map[string]string{"IPv4": "KUBE-", "IPv6": "KUBE-6-"} {
		sets := 0
		for _, name := range before.leftover {
			if strings.HasPrefix(name, kube) && (family == "IPv6" || !strings.HasPrefix(name, "KUBE-6-")) {
				sets++
			}
		}
		if sets > 0 {
			all = append(all, fmt.Sprintf("IPVS %s: removed: %d ipsets", family, sets))
		}
	}
	slices.Sort(all)
	return all
}

// TestCleanupCounts: --dry-run changes nothing, and prints what the real run then removes, which is
// the difference in the kernel. Afterwards there is nothing to remove.
func TestCleanupCounts(t *testing.T) { checkCounts(t, "iptables") }

// TestCleanupCountsIPVS is the same with virtual servers.
func TestCleanupCountsIPVS(t *testing.T) {
	need.IPVS(t)
	checkCounts(t, "ipvs")
}

func checkCounts(t *testing.T, mode string) {
	t.Helper()
	need.IPTables(t)
	manifests := clusterFile(t)
	d := start(t, "--node-name=bj-3", "--manifests="+manifests, "--proxy-mode="+mode).ready(t)
	if code := d.stop(t, syscall.SIGTERM); code != command.OK {
		t.Fatalf("code %d", code)
	}
	output(t, d.ns, "", "iptables-nft", "-A", "FORWARD", "-p", "icmp", "-j", "ACCEPT") // of another program
	cleanup := func(args ...string) string {
		return output(t, d.ns, "", append([]string{os.Args[0], "cleanup", "--iptables-variant=nft"}, args...)...)
	}
	before := readKernel(t, d.ns)
	would := cleanup("--dry-run")
	if now := readKernel(t, d.ns); now.text != before.text {
		t.Errorf("--dry-run changed the kernel from\n%s\nto\n%s", before.text, now.text)
	}
	did := cleanup()
	after := readKernel(t, d.ns)
	if want := strings.ReplaceAll(did, ": removed:", ": would remove:"); !strings.HasPrefix(want, would) || !strings.Contains(would, ": would remove:") {
		t.Errorf("--dry-run:\n%s\nthe real run:\n%s", would, did)
	}
	var got []string
	for line := range strings.Lines(did) {
		if strings.Contains(line, ": removed: ") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	slices.Sort(got)
	if want := removedLines(before, after); !slices.Equal(got, want) {
		t.Errorf("cleanup says\n%s\nthe kernel lacks\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	left := "" // what cleanup says of it, as its last line
	if strings.Contains(after.text, ":KUBE-FIREWALL ") {
		left = "left: chain KUBE-FIREWALL in filter and the jumps to it, because the kubelet writes and needs them too\n"
	}
	if left == "" && mode == "iptables" || left != "" && !strings.HasSuffix(did, "\n"+left) || strings.Contains(did, "left:") != (left != "") {
		t.Errorf("KUBE-FIREWALL is in the kernel: %t, and cleanup says:\n%s", left != "", did)
	}
	const nothing = "nothing to remove: nothing of gridproxy or kube-proxy is here\n"
	for flag, want := range map[string]string{"--dry-run": nothing, "--dry-run=false": nothing + left, "--service-proxy-name=trial": nothing} {
		if text := cleanup(flag); text != want {
			t.Errorf("%s once everything is gone:\n%s\nwant\n%s", flag, text, want)
		}
	}
	if text := cleanup("--sysctls"); !strings.HasSuffix(text, "\n"+left) {
		t.Errorf("with --sysctls the last line is not %q:\n%s", left, text)
	}
}

// TestCleanupWithoutRoot: what could not be looked at is not said to be empty.
func TestCleanupWithoutRoot(t *testing.T) {
	need.Root(t)
	program := filepath.Join(t.TempDir(), "gridproxy")
	content, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, content, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(program); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, "cleanup", "--dry-run")
	cmd.Env = append(os.Environ(), asGridproxy+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if code, text, said, err := finish(cmd); err != nil || code != command.Failure || text != "" || !strings.HasPrefix(said, "error: not root: run this as root") {
		t.Errorf("%v, code %d, standard output %q, standard error %q", err, code, text, said)
	}
}
