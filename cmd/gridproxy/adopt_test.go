package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/need"

	"github.com/spf13/pflag"
)

// TestReadCommandsAdoptFlags: in the container of a running daemon explain, render and diff answer
// with its flags, and print that they do; with any other flag on the command line they do not.
func TestReadCommandsAdoptFlags(t *testing.T) {
	need.IPTables(t)
	manifests := tempFile(t, strings.Replace(cluster("10.0.0.70", "beijing"), `["location"]`, `["nowhere"]`, 1))
	saved := saveState(t, t.TempDir(), manifests)
	d := startContainer(t, newNamespace(t),
		"--nodes-without-unit=open", "--iptables-variant=nft", "--conntrack-max-per-core=0", "--node-name=bj-3", "--manifests="+manifests)
	const from = "Flags: from process 1\n"
	for _, test := range []struct {
		args    string
		want    string
		adopted bool
	}{
		{"explain servicegrid-demo-svc", " kept ", true},
		{"explain servicegrid-demo-svc -o json", `"kept": true`, true},
		{"explain servicegrid-demo-svc --node-name=bj-3", " kept ", true},
		{"explain servicegrid-demo-svc --node-name=bj-3 --manifests=" + manifests, " dropped ", false},
		{"render", "10.0.0.70:", true},
		{"render --ip-family=ipv6", "*nat", true},
		{"explain servicegrid-demo-svc --from-state=" + saved, " kept ", true},
		{"explain servicegrid-demo-svc --from-state=" + saved, "State:    saved 2026-07-24T08:00:00Z", true},
		{"render --from-state=" + saved, "10.0.0.70:", true},
		{"render --from-state=" + saved + " --cluster-cidr=10.0.0.0/16", "REJECT", false},
		{"diff", "code 0", true},
		{"diff --wait=10s", "code 0", true},
		{"render --node-name=bj-3 --manifests=" + manifests, "*nat", false},
	} {
		code, text := d.run(t, strings.Fields(test.args)...)
		text += fmt.Sprintf("code %d\n", code)
		if !strings.Contains(text, test.want) || strings.Contains(text, from) != test.adopted {
			t.Errorf("%s: want %q and flags of the daemon %v; got\n%s", test.args, test.want, test.adopted, text)
		}
	}
}

// TestAdoptFlags: which process is taken for the daemon, and which flags count.
func TestAdoptFlags(t *testing.T) {
	const daemon = "gridproxy\x00run\x00--node-name=a\x00"
	for _, tc := range []struct {
		name  string
		given []string
		own   []string
		// lines are by process; "9" has another network, "8" other file systems; "4" and "5" are another
		// user's, "4" by its real user alone.
		lines    map[string]string
		node     string
		process  int
		warnings int
		fails    bool
	}{
		{name: "process 1", lines: map[string]string{"1": daemon}, node: "a", process: 1},
		{name: "a flag of its own", given: []string{"--wait=1s"}, lines: map[string]string{"1": daemon}, node: "a", process: 1},
		{name: "another flag", given: []string{"--node-name=b"}, lines: map[string]string{"1": daemon}, node: "b"},
		{name: "its own flag wins", given: []string{"--node-name=b"}, own: []string{"node-name"}, lines: map[string]string{"1": daemon}, node: "b", process: 1},
		{name: "another flag, no daemon", given: []string{"--node-name=b"}, lines: map[string]string{"1": "/sbin/init\x00"}, node: "b"},
		{name: "no flags", lines: map[string]string{"1": "gridproxy\x00run\x00"}, process: 1},
		{name: "no daemon", lines: map[string]string{"1": "/sbin/init\x00"}, warnings: 1},
		{name: "no daemon, a flag of its own", given: []string{"--wait=1s"}, lines: map[string]string{"1": "/sbin/init\x00"}, warnings: 1},
		{name: "a flag of another version", lines: map[string]string{"1": "gridproxy\x00run\x00--unknown\x00"}, fails: true},
		{name: "behind an init", lines: map[string]string{"1": "/sbin/tini\x00", "7": daemon}, node: "a", process: 7},
		{name: "in another network", lines: map[string]string{"1": "/sbin/init\x00", "9": daemon}, warnings: 1},
		{name: "in other file systems", lines: map[string]string{"1": "/sbin/init\x00", "8": daemon}, warnings: 1},
		{name: "another user's", lines: map[string]string{"1": "/sbin/init\x00", "4": daemon, "5": daemon}, warnings: 1},
		{name: "beside another user's", lines: map[string]string{"4": daemon, "5": daemon, "7": daemon}, node: "a", process: 7},
		{name: "several", lines: map[string]string{"6": daemon, "7": daemon}, warnings: 1},
		{name: "a preparation", lines: map[string]string{"1": "gridproxy\x00run\x00--init-only\x00"}, warnings: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			proc := t.TempDir()
			for _, process := range []string{"self", "1", "4", "5", "6", "7", "8", "9"} {
				dir := filepath.Join(proc, process)
				if err := os.MkdirAll(filepath.Join(dir, "ns"), 0o700); err != nil {
					t.Fatal(err)
				}
				for namespace, not := range map[string]string{"net": "9", "mnt": "8"} {
					link := namespace + ":[1]"
					if process == not {
						link = namespace + ":[2]"
					}
					if err := os.Symlink(link, filepath.Join(dir, "ns", namespace)); err != nil {
						t.Fatal(err)
					}
				}
				write(t, filepath.Join(dir, "cmdline"), tc.lines[process])
				us := os.Geteuid()
				users := map[string][2]int{"4": {us + 1, us}, "5": {us + 1, us + 1}}
				if _, others := users[process]; !others {
					users[process] = [2]int{us, us}
				}
				write(t, filepath.Join(dir, "status"),
					fmt.Sprintf("Name:\tgridproxy\nUid:\t%d\t%[2]d\t%[2]d\t%[2]d\nGid:\t0\t0\t0\t0\n", users[process][0], users[process][1]))
			}
			flags := pflag.NewFlagSet("diff", pflag.ContinueOnError)
			node := flags.String("node-name", "", "")
			flags.Duration("wait", 0, "")
			if err := flags.Parse(tc.given); err != nil {
				t.Fatal(err)
			}
			warnings := 0
			from, err := adoption{own: append(tc.own, "wait"), required: true}.from(flags, proc, func(string) { warnings++ })
			if *node != tc.node || from.process != tc.process || warnings != tc.warnings || (err != nil) != tc.fails {
				t.Errorf("node %q, from process %d, %d warnings, error %v", *node, from.process, warnings, err)
			}
		})
	}
}

func TestFlagsOfProcess(t *testing.T) {
	for line, want := range map[string][]string{
		"/usr/local/bin/gridproxy\x00run\x00--node-name=a\x00-v\x004\x00": {"--node-name=a", "-v", "4"},
		"/usr/local/bin/gridproxy\x00run\x00":                             {},
		"/usr/local/bin/gridproxy\x00explain\x00run\x00--node-name=a\x00": nil,
		"/sbin/init\x00":               nil,
		"runsvdir\x00-P\x00/run\x00":   nil,
		"kube-proxy\x00--config=x\x00": nil,
		"":                             nil,
		"/sbin/docker-init\x00--\x00/gridproxy\x00run\x00--shadow\x00": nil,
	} {
		if got := flagsOf([]byte(line)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
