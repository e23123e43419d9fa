package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// startKubeProxy becomes kube-proxy with one variant of iptables first in its PATH: that of VARIANT
// or, if this is empty, the one that the kubelet has left its hint in.
func startKubeProxy() error {
	variant := os.Getenv("VARIANT")
	if variant == "" {
		variant = hinted()
	}
	multi, err := exec.LookPath("xtables-" + variant + "-multi")
	if err != nil {
		return fmt.Errorf("finding the variant %s of iptables: %w", variant, err)
	}
	bin, err := os.MkdirTemp("", "iptables-")
	if err != nil {
		return fmt.Errorf("making a folder for iptables: %w", err)
	}
	for _, tool := range []string{"iptables", "ip6tables"} {
		for _, kind := range []string{"", "-save", "-restore"} {
			if err := os.Symlink(multi, filepath.Join(bin, tool+kind)); err != nil {
				return fmt.Errorf("choosing a variant of iptables: %w", err)
			}
		}
	}
	// It must be set, not added: of two, a program takes the first.
	if err := os.Setenv("PATH", bin+":"+os.Getenv("PATH")); err != nil {
		return fmt.Errorf("choosing a variant of iptables: %w", err)
	}
	if err := syscall.Exec("/usr/local/bin/kube-proxy", append([]string{"kube-proxy"}, os.Args[1:]...), os.Environ()); err != nil {
		return fmt.Errorf("becoming kube-proxy: %w", err)
	}
	return nil
}

// hinted is the variant with the kubelet's hint in it. It is looked for where looking leaves
// nothing behind: the legacy variant makes each table that is named. An error means that the table
// does not exist.
func hinted() string {
	rules, err := exec.Command("xtables-nft-multi", "iptables-save", "-t", "mangle").Output()
	if err == nil && bytes.Contains(rules, []byte(":KUBE-IPTABLES-HINT ")) {
		return "nft"
	}
	return "legacy"
}
