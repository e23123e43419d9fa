package iptables

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// toolPackage is a folder with the programs of iptables, alone in PATH. A test replaces them as a
// package manager does.
type toolPackage struct{ dir string }

func newToolPackage(t *testing.T) toolPackage {
	t.Helper()
	p := toolPackage{dir: t.TempDir()}
	real := map[string]string{}
	for _, name := range append(toolNames(), "sh", "cat", "grep") {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		real[name] = path
	}
	t.Setenv("PATH", p.dir)
	for name, path := range real {
		p.put(t, name, fmt.Sprintf("exec %s \"$@\"", path))
	}
	return p
}

// toolNames returns the names of the tools of each variant and family.
func toolNames() (all []string) {
	for _, v := range []netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy} {
		for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
			for _, suffix := range toolSuffixes {
				all = append(all, toolName(v, f, suffix))
			}
		}
	}
	return all
}

// put replaces a program by a script, atomically.
func (p toolPackage) put(t *testing.T, name, script string) {
	t.Helper()
	if err := os.Rename(program(t, p.dir, name+".new", script), filepath.Join(p.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// script returns what put wrote last.
func (p toolPackage) script(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(string(text), "#!/bin/sh\n")
}

// says makes a program answer --version with text, and otherwise behave as before.
func (p toolPackage) says(t *testing.T, name, text string) {
	t.Helper()
	_, rest, _ := strings.Cut(p.script(t, name), "exec ")
	p.put(t, name, fmt.Sprintf("[ \"$1\" != --version ] || { echo '%s'; exit; }\nexec %s", text, rest))
}

func (p toolPackage) remove(t *testing.T, name string) (restore func()) {
	t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Rename(file+".away", file); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUpgradeOfTools: programs that are replaced under a running daemon are probed again, with the
// effects on the rules. While they are missing or broken the rules in force stay.
func TestUpgradeOfTools(t *testing.T) {
	private(t)
	p := newToolPackage(t)
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	rs := ruleset(services(2, 1))
	mustSync(t, b, rs, true)
	before := run(t, "iptables-nft-save -t nat | grep -- -A")
	if !strings.Contains(before, "--random-fully") {
		t.Fatalf("no rule has --random-fully:\n%s", before)
	}

	restore := p.remove(t, "iptables-nft-restore")
	_, err := trySync(t, b, ruleset(services(3, 1)), true)
	if err == nil || !strings.Contains(err.Error(), "iptables-nft-restore is not on this machine: install the package iptables") {
		t.Errorf("%v, want an error that names the missing program", err)
	}
	if after := run(t, "iptables-nft-save -t nat | grep -- -A"); after != before {
		t.Errorf("rules while a program is missing:\n%s\nbefore:\n%s", after, before)
	}
	restore()
	mustSync(t, b, rs, true)

	p.says(t, "iptables-nft", "iptables v1.6.1")
	mustSync(t, b, rs, true)
	if got := b.syncers[0].kernel.version.String(); got != "1.6.1" {
		t.Errorf("version %s, want that of the new program", got)
	}
	if after := run(t, "iptables-nft-save -t nat | grep -- -A"); strings.Contains(after, "--random-fully") {
		t.Errorf("rules that iptables 1.6.1 does not know:\n%s", after)
	}

	p.says(t, "iptables-nft", "iptables v1.8.11 (nf_tables)")
	mustSync(t, b, rs, true)
	wantEqual(t, t, b, rs)
}

// TestUpgradeOverAnUnreadableTable: changes are still written after the programs are replaced while
// a native rule makes table nat unreadable.
func TestUpgradeOverAnUnreadableTable(t *testing.T) {
	private(t)
	p := newToolPackage(t)
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	mustSync(t, b, ruleset(services(2, 1)), true)
	nft := "/usr/sbin/nft " // PATH has nothing but the tools
	run(t, nft+"add rule ip nat POSTROUTING oifname eth0 ct state new accept")
	p.says(t, "iptables-nft", "iptables v1.8.11 (nf_tables)")
	mustSync(t, b, ruleset(services(3, 1)), true)
	run(t, nft+"list chain ip nat "+clusterChain(service(2, 1, 0)))
	run(t, nft+"flush chain ip nat POSTROUTING")
	mustSync(t, b, ruleset(services(3, 1)), true)
	wantEqual(t, t, b, ruleset(services(3, 1)))
}

// TestToolOfOtherVariant: a program that has become one of the other variant writes nothing,
// because the rules of both would be in force.
func TestToolOfOtherVariant(t *testing.T) {
	private(t)
	p := newToolPackage(t)
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	mustSync(t, b, ruleset(services(2, 1)), true)
	p.put(t, "iptables-nft", p.script(t, "iptables-legacy"))
	p.put(t, "iptables-nft-restore", p.script(t, "iptables-legacy-restore"))
	for range 2 {
		_, err := trySync(t, b, ruleset(services(3, 1)), true)
		if err == nil || !strings.Contains(err.Error(), "says that it is iptables-legacy: reinstall the package iptables") {
			t.Errorf("%v, want an error that says what is wrong", err)
		}
	}
	if tables := legacyTables(t); strings.Contains(tables, "nat") {
		t.Errorf("legacy tables were made: %q", tables)
	}
}

// TestTableThatChangesMeanwhile: a command is run again if another process without the xtables lock
// has changed the table, but not if the kernel lacks a module.
func TestTableThatChangesMeanwhile(t *testing.T) {
	for message, want := range map[string]int{
		"iptables: Resource temporarily unavailable.":                                2,
		"can't initialize iptables table `filter': Resource temporarily unavailable": 1,
	} {
		private(t)
		p, calls := newToolPackage(t), filepath.Join(t.TempDir(), "calls")
		script := p.script(t, "iptables-legacy")
		p.put(t, "iptables-legacy", `case "$*" in *-N*) ;; *) `+script+` ;; esac
echo call >>`+calls+`
[ $(grep -c call `+calls+`) -gt 1 ] || { echo "`+strings.ReplaceAll(message, "`", "\\`")+`" >&2; exit 4; }
`+script)
		c, err := openCommand(t.Context(), filepath.Join(p.dir, "iptables-legacy"), netfilter.IPv4)
		if err != nil {
			t.Fatal(err)
		}
		err = c.newChain(t.Context(), render.ChainID{Table: netfilter.Filter, Chain: "KUBE-TEST"})
		text, _ := os.ReadFile(calls) // no file: no call
		if n := strings.Count(string(text), "call"); n != want || (err == nil) != (want > 1) {
			t.Errorf("%s: run %d times, error %v; want %d times", message, n, err, want)
		}
	}
}

// TestSwitchOfAlternatives: when the machine's iptables becomes another variant, as
// update-alternatives does it, our rules keep their variant, and the log says so once.
func TestSwitchOfAlternatives(t *testing.T) {
	private(t)
	p := newToolPackage(t)
	link := filepath.Join(p.dir, "iptables")
	if err := os.Symlink("iptables-nft", link); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	b, err := New(t.Context(), Config{Families: []netfilter.Family{netfilter.IPv4}, MasqueradeBit: 14, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	rs := ruleset(services(2, 1))
	mustSync(t, b, rs, true)
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("iptables-legacy", link); err != nil {
		t.Fatal(err)
	}
	mustSync(t, b, rs, true)
	more := ruleset(services(3, 1))
	mustSync(t, b, more, true)
	wantEqual(t, t, b, more)
	if tables := legacyTables(t); strings.Contains(tables, "nat") {
		t.Errorf("legacy tables were made: %q", tables)
	}
	if n := strings.Count(log.String(), "iptables=legacy gridproxy=nft"); n != 1 {
		t.Errorf("the switch is logged %d times:\n%s", n, log.String())
	}
}
