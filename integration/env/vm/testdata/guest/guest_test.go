// Package guest is run inside a virtual machine by the test of vmexec: some of its tests are meant to
// fail.
package guest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestKernel: the kernel has what this machine's may lack.
func TestKernel(t *testing.T) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	release := unix.ByteSliceToString(u.Release[:])
	if release == "" || release != os.Getenv("GRIDPROXY_GUEST") {
		t.Fatalf("the kernel is %q, GRIDPROXY_GUEST says %q", release, os.Getenv("GRIDPROXY_GUEST"))
	}
	t.Log("kernel " + release)
	run(t, "modprobe", "ip_vs")
	if _, err := os.Stat("/proc/thread-self/net/ip_vs"); err != nil {
		t.Error(err)
	}
	run(t, "ipvsadm", "-A", "-t", "10.96.0.10:80", "-s", "rr")
	if table := run(t, "ipvsadm", "-Ln"); !strings.Contains(table, "10.96.0.10:80 rr") {
		t.Errorf("ipvsadm -Ln: %s", table)
	}
	link := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "kube-ipvs0"}}
	if err := netlink.LinkAdd(link); err != nil {
		t.Errorf("dummy link: %v", err)
	}
	if err := netlink.IpsetCreate("s", "hash:ip,port", netlink.IpsetCreateOptions{}); err != nil {
		t.Errorf("ipset: %v", err)
	}
	for _, variant := range []string{"nft", "legacy"} {
		run(t, "iptables-"+variant, "-t", "nat", "-A", "POSTROUTING", "-m", "ipvs", "--vaddr", "10.96.0.10", "-j", "MASQUERADE")
		run(t, "ip6tables-"+variant, "-t", "nat", "-A", "POSTROUTING", "-m", "statistic", "--mode", "random", "--probability", "0.5", "-j", "MASQUERADE", "--random-fully")
		run(t, "iptables-"+variant, "-A", "FORWARD", "-m", "set", "--match-set", "s", "dst,dst", "-j", "ACCEPT")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP)
	if err != nil {
		t.Errorf("SCTP socket: %v", err)
	} else if err := unix.Bind(fd, &unix.SockaddrInet4{Port: 9}); err != nil {
		t.Errorf("binding an SCTP socket: %v", err)
	} else if err := unix.Listen(fd, 1); err != nil {
		t.Errorf("listening on an SCTP socket: %v", err)
	}
}

// TestSurroundings: a test finds what it finds on the host.
func TestSurroundings(t *testing.T) {
	line, err := os.ReadFile("testdata/line")
	if err != nil || string(line) != "a line of the host\n" {
		t.Errorf("testdata/line: %q, %v", line, err)
	}
	if v := os.Getenv("GRIDPROXY_SAID"); v != "to the guest" {
		t.Errorf("GRIDPROXY_SAID is %q", v)
	}
	if v := os.Getenv("REQUIRE"); v != "all" {
		t.Errorf("REQUIRE is %q, so what is missing here would be skipped", v)
	}
	if v, set := os.LookupEnv("OTHER_SAID"); set {
		t.Errorf("OTHER_SAID is %q", v)
	}
	if out := run(t, os.Getenv("GRIDPROXY_PROGRAMS")+"/gridproxy"); out != "packed\n" {
		t.Errorf("gridproxy prints %q", out)
	}
	if err := os.WriteFile(t.TempDir()+"/file", nil, 0o600); err != nil {
		t.Error(err)
	}
	// The longest line, and bytes that a terminal would change.
	fmt.Println(strings.Repeat("x", 100_000) + "\a\b\t\r\x03\x04\x11\x13\xff.")
}

func TestPass(*testing.T)   { fmt.Print("no newline at the end") }
func TestFail(t *testing.T) { t.Error("it failed") }
func TestPanic(*testing.T)  { panic("it panicked") }
func TestHang(*testing.T)   { select {} }

func TestExit(*testing.T) {
	fmt.Print("no newline before the end")
	os.Exit(7)
}

func TestKilled(*testing.T) { _ = unix.Kill(os.Getpid(), unix.SIGKILL) }

// TestCrash ends the kernel.
func TestCrash(t *testing.T) {
	if os.Getenv("GRIDPROXY_GUEST") == "" {
		t.Fatal("not in a guest")
	}
	t.Fatal(os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0))
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
