package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/topology/manifest"
	"gridproxy/topology/watch"
)

// answerOf runs a command on this machine.
func answerOf(t *testing.T, args ...string) (code int, text, said string) {
	t.Helper()
	code, text, said, err := finish(gridproxy(args...))
	if err != nil {
		t.Fatal(err)
	}
	return code, text, said
}

// saveState saves what manifests say to node bj-3, and returns the file.
func saveState(t *testing.T, dir, manifests string) string {
	t.Helper()
	objects, _, err := manifest.Read([]string{manifests}, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.NewStore(dir, "bj-3").Save(objects.Snapshot("bj-3"), time.Date(2026, 7, 24, 8, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "state")
}

// TestFromState: render and explain answer from a saved state as from what it was saved from, and
// say from when and where it is.
func TestFromState(t *testing.T) {
	dir := t.TempDir()
	manifests := filepath.Join(dir, "cluster.yaml")
	write(t, manifests, cluster("10.0.0.70", "beijing"))
	file := saveState(t, dir, manifests)
	line := "saved 2026-07-24T08:00:00Z, read from " + file
	t.Setenv("NODE_NAME", "")

	for _, args := range [][]string{{"render", "--cluster-cidr=10.0.0.0/16"}, {"render", "--proxy-mode=ipvs"}, {"explain", "--all"}} {
		code, want, warnings := answerOf(t, append(args, "--node-name=bj-3", "--manifests="+manifests)...)
		if code != 0 || want == "" {
			t.Fatalf("%q: code %d: %s", args, code, warnings)
		}
		for _, node := range [][]string{nil, {"--node-name=bj-3"}} {
			code, got, said := answerOf(t, slices.Concat(args, node, []string{"--from-state=" + file})...)
			if code != 0 || got != want || said != "State: "+line+"\n"+warnings {
				t.Errorf("%q %q: code %d, the same %v, standard error %q", args, node, code, got == want, said)
			}
		}
	}
	_, want, _ := answerOf(t, "explain", "servicegrid-demo-svc", "--node-name=bj-3", "--manifests="+manifests)
	code, got, said := answerOf(t, "explain", "servicegrid-demo-svc", "--from-state="+file)
	if without := strings.Replace(got, "State:    "+line+"\n", "", 1); code != 0 || said != "" || without != want || got == want {
		t.Errorf("explain: code %d, %q, answer\n%s", code, said, got)
	}
	if _, got, _ := answerOf(t, "explain", "servicegrid-demo-svc", "--from-state="+file, "-o=json"); !strings.Contains(got, `"state": "`+line+`"`) {
		t.Errorf("explain -o json:\n%s", got)
	}
}

// TestFromStateMistakes: what is wrong with the flags or with the file is one error.
func TestFromStateMistakes(t *testing.T) {
	dir := t.TempDir()
	manifests := filepath.Join(dir, "cluster.yaml")
	write(t, manifests, cluster("10.0.0.70", "beijing"))
	file := saveState(t, dir, manifests)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged, empty := filepath.Join(dir, "damaged"), filepath.Join(dir, "empty")
	write(t, damaged, string(whole[:len(whole)-1]))
	write(t, empty, "")
	for _, tc := range []struct {
		code int
		want string
		args []string
	}{
		{2, `error: --node-name bj-1 and --from-state ` + file + `: the file is the state of Node "bj-3"; leave --node-name out`, []string{"--from-state=" + file, "--node-name=bj-1"}},
		{2, "error: --from-state " + file + " and --manifests [" + manifests + "]: give one of them", []string{"--from-state=" + file, "--manifests=" + manifests}},
		{2, "error: --from-state " + file + " and --kubeconfig k: give one of them", []string{"--from-state=" + file, "--kubeconfig=k"}},
		{2, "error: --from-state " + file + " and --master http://a: give one of them", []string{"--from-state=" + file, "--master=http://a"}},
		{2, "error: --from-state " + file + " and --api-servers 192.0.2.1:6443: give one of them", []string{"--from-state=" + file, "--api-servers=192.0.2.1:6443"}},
		{2, `error: --from-state "": want a file`, []string{"--from-state="}},
		{3, "error: reading the saved state " + damaged + ": the file is damaged: its checksum is wrong; want a file that gridproxy run --state-dir saved", []string{"--from-state=" + damaged}},
		{3, "error: reading the saved state " + empty + ": the file is damaged: it is truncated, or no state of gridproxy;", []string{"--from-state=" + empty}},
		{3, "error: reading the saved state " + dir + ": is a directory, not a regular file;", []string{"--from-state=" + dir}},
		{3, "error: reading the saved state " + dir + "/none: stat " + dir + "/none: no such file or directory;", []string{"--from-state=" + dir + "/none"}},
	} {
		for _, command := range [][]string{{"render"}, {"explain", "web"}} {
			code, text, said := answerOf(t, append(command, tc.args...)...)
			errors := strings.Count(said, "error: ")
			if code != tc.code || text != "" || errors != 1 || !strings.HasPrefix(said, tc.want) {
				t.Errorf("%q %q: code %d, %q, want %d, %q", command, tc.args, code, said, tc.code, tc.want)
			}
		}
	}
	if code, _, said := answerOf(t, "explain", "web", "--all-nodes", "--from-state="+file); code != 2 || !strings.Contains(said, "a saved state has the Nodes of its own units alone") {
		t.Errorf("--all-nodes: code %d, %q", code, said)
	}
	if code, _, said := answerOf(t, "matrix", "--from-state="+file); code != 2 || !strings.Contains(said, "unknown flag: --from-state") {
		t.Errorf("matrix: code %d, %q", code, said)
	}
}
