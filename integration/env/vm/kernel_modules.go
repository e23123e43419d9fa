package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// wantedModules are the modules, by the beginning of their paths, that a test of Services may come
// to need. What they depend on comes along; what they ask for by name only when they run is listed
// too.
var wantedModules = [...]string{
	"kernel/net/netfilter/", // with ipvs/ and ipset/
	"kernel/net/ipv4/netfilter/",
	"kernel/net/ipv6/netfilter/",
	"kernel/net/bridge/",
	"kernel/net/sctp/",
	"kernel/drivers/net/dummy",
	"kernel/drivers/net/veth",
	"kernel/drivers/net/vxlan",
	"kernel/lib/ts_",            // text search of iptables -m string
	"kernel/net/xfrm/xfrm_user", // netlink handles of github.com/vishvananda/netlink open it unless told not to
	// The checksum of SCTP packets and the signature of its cookies.
	"kernel/crypto/crc32c",
	"kernel/arch/x86/crypto/crc32c",
	"kernel/crypto/hmac",
	"kernel/crypto/sha",
	"kernel/crypto/md5",
}

// Files are the files of a kernel that a guest needs, by absolute path: the modules and modprobe's
// indexes. They belong below /lib/modules in the guest.
func (k Kernel) Files() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(k.Modules, "modules.dep"))
	if err != nil {
		return nil, fmt.Errorf("reading the list of modules: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(k.Modules, "modules.*"))
	if err != nil {
		return nil, fmt.Errorf("looking for the indexes of modules: %w", err)
	}
	for _, m := range neededModules(string(text)) {
		files = append(files, filepath.Join(k.Modules, m))
	}
	return files, nil
}

// neededModules picks the wanted modules of a modules.dep and what they depend on, sorted. A line
// is a module, a colon, and all that it depends on, directly or not.
func neededModules(dep string) []string {
	var modules []string
	for line := range strings.Lines(dep) {
		module, depends, _ := strings.Cut(strings.TrimSpace(line), ":")
		if slices.ContainsFunc(wantedModules[:], func(prefix string) bool { return strings.HasPrefix(module, prefix) }) {
			modules = append(append(modules, module), strings.Fields(depends)...)
		}
	}
	slices.Sort(modules)
	return slices.Compact(modules)
}
