package need

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Group is what belongs together: programs for one purpose, and the Debian packages that hold them.
// Where all programs are there nothing is installed, which needs neither root nor a package
// archive.
type Group struct {
	Name     string
	Programs []string // in PATH, or absolute paths of files
	Packages []string // that hold them
}

// Groups are all groups.
func Groups() []Group {
	return []Group{
		{
			Name:     "iptables", // network namespaces, both variants of iptables, rules of others beside them
			Programs: []string{"iptables-nft", "iptables-legacy", "ip", "conntrack", "nft", "ipset"},
			Packages: []string{"iptables", "iproute2", "conntrack", "nftables", "ipset"},
		},
		{
			Name:     "machines", // clusters of machines; runc is built with libseccomp
			Programs: []string{"gcc", "pkg-config", "/usr/include/seccomp.h", "nsenter", "curl"},
			Packages: []string{"gcc", "libc6-dev", "pkg-config", "libseccomp-dev", "util-linux", "curl"},
		},
		{
			Name:     "qemu", // virtual machines, and what their tests start in them
			Programs: []string{"qemu-system-x86_64", "busybox", "xz", "ipvsadm", "ipset", "depmod", "nft"},
			Packages: []string{"qemu-system-x86", "busybox-static", "xz-utils", "ipvsadm", "ipset", "kmod", "nftables"},
		},
		{
			Name:     "buildah", // container images without a registry
			Programs: []string{"buildah", "debootstrap"},
			Packages: []string{"buildah", "debootstrap"},
		},
		{
			Name:     "strace", // kills a process at a system call
			Programs: []string{"strace"},
			Packages: []string{"strace"},
		},
		{
			Name:     "systemd", // units are verified
			Programs: []string{"systemd-analyze"},
			Packages: []string{"systemd"},
		},
		{
			Name:     "codespell",
			Programs: []string{"codespell"},
			Packages: []string{"codespell"},
		},
		{
			Name:     "prometheus", // queries and alerts
			Programs: []string{"prometheus", "promtool"},
			Packages: []string{"prometheus"},
		},
		{
			Name:     "gcc", // programs with the race detector
			Programs: []string{"gcc", "/usr/include/stdlib.h"},
			Packages: []string{"gcc", "libc6-dev"},
		},
		{
			Name:     "dnsperf", // a load of DNS queries
			Programs: []string{"dnsperf"},
			Packages: []string{"dnsperf"},
		},
	}
}

// FindGroup returns the group of that name.
func FindGroup(name string) (Group, error) {
	var names []string
	for _, g := range Groups() {
		if g.Name == name {
			return g, nil
		}
		names = append(names, g.Name)
	}
	return Group{}, fmt.Errorf("there is no group of packages %q: choose from %s", name, strings.Join(names, ", "))
}

// Missing are the programs of the group that this machine does not have.
func (g Group) Missing() []string {
	return slices.DeleteFunc(slices.Clone(g.Programs), func(p string) bool {
		if strings.HasPrefix(p, "/") {
			_, err := os.Stat(p)
			return err == nil
		}
		return installed(p)
	})
}

// installed says whether a program is in PATH, or where Debian keeps those of the administrator,
// which are not in the PATH of other users.
func installed(program string) bool {
	for _, path := range []string{program, "/usr/sbin/" + program, "/sbin/" + program} {
		if _, err := exec.LookPath(path); err == nil {
			return true
		}
	}
	return false
}

// Remedy says what of the group is missing and how to get it; "" = nothing is missing.
func (g Group) Remedy() string {
	missing := g.Missing()
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("%s is not installed: run `apt-get install %s`",
		strings.Join(missing, ", "), strings.Join(g.Packages, " "))
}

// Install installs the group's packages if one of its programs is missing.
func (g Group) Install(ctx context.Context, progress io.Writer) error {
	missing := g.Missing()
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(progress, "== installing %s (missing: %s)\n", strings.Join(g.Packages, ", "), strings.Join(missing, ", "))
	install := append([]string{"install", "-y", "-qq", "--no-install-recommends"}, g.Packages...)
	for _, args := range [][]string{{"update", "-qq"}, install} {
		if err := aptGet(ctx, args); err != nil {
			return fmt.Errorf("installing %s: %w", strings.Join(g.Packages, " "), err)
		}
	}
	if missing := g.Missing(); len(missing) > 0 {
		return fmt.Errorf("apt-get installed %v, but %s is still missing: is PATH complete?", g.Packages, strings.Join(missing, ", "))
	}
	return nil
}

// aptTimeout bounds one call of apt-get, the time included in which it waits for another one.
const aptTimeout = 10 * time.Minute

// aptGet runs apt-get. Its output is only of interest if it fails.
func aptGet(ctx context.Context, args []string) error {
	if os.Geteuid() != 0 {
		return errors.New("apt-get needs root: run this command as root")
	}
	ctx, cancel := context.WithTimeout(ctx, aptTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-o", "DPkg::Lock::Timeout=300"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}
