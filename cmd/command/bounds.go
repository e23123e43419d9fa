package command

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"gridproxy/topology/excerpt"
)

// CheckPath returns an error that names flag and example if path is relative, because the
// folder in which a daemon starts must not matter. An empty path, for no file, is no error.
func CheckPath(flag, path, example string) error {
	if path == "" || filepath.IsAbs(path) {
		return nil
	}
	return fmt.Errorf("--%s %s: the path depends on the folder in which the program is started; give an absolute path, such as %s",
		flag, excerpt.Of(path), example)
}

// ParseDNSAddresses returns the addresses in text, separated by commas: at most one of each
// family, none if text is empty. Unspecified, loopback and multicast addresses are errors.
func ParseDNSAddresses(text string) ([]netip.Addr, error) {
	var all []netip.Addr
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		addr, err := netip.ParseAddr(part)
		switch {
		case err != nil || addr.Zone() != "" || addr.Is4In6():
			return nil, fmt.Errorf("%q is no IP address; want something like 169.254.20.12", part)
		case addr.IsUnspecified() || addr.IsLoopback() || addr.IsMulticast():
			return nil, fmt.Errorf("%s is of no use: other machines and Pods have it too, or nothing can listen there; want something like 169.254.20.12", addr)
		}
		for _, other := range all {
			if other.Is6() == addr.Is6() {
				return nil, fmt.Errorf("%s and %s are of one family; want one of each family at most", other, addr)
			}
		}
		all = append(all, addr)
	}
	return all, nil
}
