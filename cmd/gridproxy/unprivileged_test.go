package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/status"
	"gridproxy/integration/env/need"

	"golang.org/x/sys/unix"
)

// asUnprivileged makes the test binary run gridproxy as in a container: see confine. Its
// value is a folder that stays writable as /run, or "-".
const asUnprivileged = "GRIDPROXY_TEST_UNPRIVILEGED"

// unprivileged is gridproxy as its DaemonSet runs it: root with only the capabilities NET_ADMIN and
// NET_RAW. All file systems are read-only, /proc/sys included, except for the folder run.
func unprivileged(run string, args ...string) *exec.Cmd {
	cmd := gridproxy(args...)
	cmd.Env = append(cmd.Env, asUnprivileged+"="+run)
	return cmd
}

// confine does to this process what a container runtime does before it starts a container, and
// starts gridproxy.
func confine(run string) error {
	runtime.LockOSThread()
	err := unix.Unshare(unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	if err == nil && run != "-" {
		err = unix.Mount(run, "/run", "", unix.MS_BIND, "")
	}
	if err == nil {
		readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		err = unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &readOnly)
	}
	if err == nil && run != "-" {
		writable := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
		err = unix.MountSetattr(unix.AT_FDCWD, "/run", 0, &writable)
	}
	if err != nil {
		return fmt.Errorf("making everything read-only: %w", err)
	}
	const kept = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_RAW
	for c := range unix.CAP_LAST_CAP + 1 {
		if kept&(1<<c) == 0 {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("dropping capability %d: %w", c, err)
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	if err := os.Unsetenv(asUnprivileged); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

// sysctl is a setting of the namespace.
func (p *process) sysctl(t *testing.T, name string) string {
	t.Helper()
	var text []byte
	within(t, p.ns, func() (err error) {
		text, err = os.ReadFile("/proc/sys/" + name)
		return err
	})
	return strings.TrimSpace(string(text))
}

// TestUnprivileged: with a read-only /proc/sys and two capabilities, the daemon logs which settings
// are wrong and what to do. After `run --init-only` it logs nothing of the kind, and works.
func TestUnprivileged(t *testing.T) {
	need.IPTables(t)
	const routing, timeout = loopbackRouting, closeWait
	for variant, run := range map[string]string{"nft": "-", "legacy": t.TempDir()} { // where xtables.lock is
		t.Run(variant, func(t *testing.T) {
			manifests := clusterFile(t)
			args := []string{"run", "--iptables-variant=" + variant, "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-close-wait=59m", "--node-name=bj-3", "--cluster-cidr=10.0.0.0/16", "--manifests=" + manifests, "-v=4"}
			if run != "-" {
				args = append(args, "--status-socket=/run/gridproxy/status.sock")
			}
			ns := newNamespace(t)
			for _, tool := range []string{"iptables-", "ip6tables-"} {
				output(t, ns, "", tool+variant, "-t", "nat", "-S") // loads modules, as the kubelet has long done where there is a Pod
			}

			denied := startCommand(t, ns, unprivileged(run, append(args, "--init-only")...))
			if code := denied.wait(t); code != command.Failure || denied.logged("securityContext.privileged: true") != 1 {
				t.Fatalf("--init-only without privilege: code %d\n%s", code, denied.output)
			}
			before := startCommand(t, ns, unprivileged(run, args...)).ready(t)
			for name, is := range map[string]string{"net.ipv4.conf.all.route_localnet=1": "is 0 and cannot be set to 1", "net.netfilter.nf_conntrack_tcp_timeout_close_wait=3540": "is 60 and cannot be set to 3540"} {
				if before.logged(is) != 1 || before.logged("sysctl -w "+name) != 1 || before.logged("gridproxy run --init-only") != 3 {
					t.Errorf("the log does not say what to do so that %s:\n%s", name, before.output)
				}
			}
			if code := before.stop(t, syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d after SIGTERM", code)
			}

			ns = newNamespace(t)
			init := startCommand(t, ns, gridproxy(append(args, "--init-only")...))
			if code := init.wait(t); code != 0 {
				t.Fatalf("--init-only: code %d", code)
			}
			if rules := init.savedBy(t, variant); !strings.Contains(rules, "-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 ") || strings.Count(rules, "-j KUBE-FIREWALL") != 2 || strings.Contains(rules, "KUBE-SERVICES") {
				t.Errorf("after --init-only, want the guard of loopback addresses and nothing else:\n%s", rules)
			}
			if got := init.sysctl(t, routing) + " " + init.sysctl(t, timeout); got != "1 3540" {
				t.Errorf("after --init-only %s and %s are %s", routing, timeout, got)
			}
			after := startCommand(t, ns, unprivileged(run, args...)).ready(t)
			const withoutLock = "a second gridproxy run in this network namespace will not be refused" // nothing of /run is writable
			if after.logged("cannot be set") > 0 || after.logged("level=WARN") != after.logged(withoutLock) || (run == "-") != (after.logged(withoutLock) == 1) {
				t.Errorf("after --init-only:\n%s", after.output)
			}
			if run != "-" {
				after.untilStatus(t, filepath.Join(run, "gridproxy", "status.sock"), "its status", func(s status.Status, _ int, _ string) bool { return s.Healthy && s.Daemon.Variant == variant })
			}
		})
	}
}

// TestUnprivilegedIPVS: mode ipvs needs some sysctls. Without `run --init-only` the daemon ends
// with an error; after it, the daemon becomes ready.
func TestUnprivilegedIPVS(t *testing.T) {
	need.IPVS(t)
	need.IPTables(t)
	manifests := clusterFile(t)
	args := []string{"run", "--proxy-mode=ipvs", "--iptables-variant=nft", "--conntrack-max-per-core=0", "--node-name=bj-3", "--manifests=" + manifests}
	ns := newNamespace(t)

	before := startCommand(t, ns, unprivileged("-", args...))
	if code := before.wait(t); code != command.Failure || before.logged("sysctl -w net.ipv4.vs.conntrack=1") != 1 || before.logged("gridproxy run --init-only") == 0 {
		t.Errorf("without --init-only: code %d\n%s", code, before.output)
	}
	init := startCommand(t, ns, gridproxy(append(args, "--init-only")...))
	if code := init.wait(t); code != 0 || init.sysctl(t, "net/ipv4/vs/conntrack") != "1" {
		t.Fatalf("--init-only: code %d, conntrack %s", code, init.sysctl(t, "net/ipv4/vs/conntrack"))
	}
	after := startCommand(t, ns, unprivileged("-", args...)).ready(t)
	if list := after.virtualServers(t); !strings.Contains(list, serverLine+"rr") || after.logged("cannot be set") > 0 {
		t.Errorf("after --init-only, virtual servers:\n%s\n%s", list, after.output)
	}
}
