package machines

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// alternatives is where Debian says which variant /usr/sbin/iptables is.
const alternatives = "/etc/alternatives"

// alternatives makes the machine's own /etc/alternatives, in which iptables and its relatives are of its variant.
// A computer without that folder keeps its iptables, and the machine has its own only in its PATH.
func (m *Machine) alternatives() (map[string]string, error) {
	entries, err := os.ReadDir(alternatives)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading which programs are chosen: %w", err)
	}
	dir := filepath.Join(m.dir, "alternatives")
	if _, err := os.Stat(dir); err == nil {
		return map[string]string{alternatives: dir}, nil // a reboot
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a folder of choices: %w", err)
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(alternatives, e.Name()))
		if err != nil {
			continue // a README is no choice
		}
		if tool, kind, _ := strings.Cut(e.Name(), "-"); (tool == "iptables" || tool == "ip6tables") && (kind == "" || kind == "save" || kind == "restore") {
			to = filepath.Join(m.tools(), e.Name())
		}
		if err := os.Symlink(to, filepath.Join(dir, e.Name())); err != nil {
			return nil, fmt.Errorf("choosing %s: %w", e.Name(), err)
		}
	}
	return map[string]string{alternatives: dir}, nil
}
