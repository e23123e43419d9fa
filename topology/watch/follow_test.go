package watch

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/wait"
	"gridproxy/topology/manifest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestFollowsAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	write(t, file, node("one"))
	f := follow(t, file)
	f.wantNodes("one")
	write(t, file, node("two"))
	f.wantNodes("two")
	replace(t, file, node("three"))
	f.wantNodes("three")
	replace(t, file, node("four")+node("n1"))
	f.wantNodes("four n1")
	if s, _ := f.Snapshot(); s.Self == nil || s.Self.Name != "n1" || s.Node != "n1" {
		t.Errorf("the Snapshot is of node %q, its own object %v", s.Node, s.Self)
	}
	if got := f.reported(); len(got) > 0 {
		t.Errorf("reports of good reads: %q", got)
	}
}

// TestFollowsADirectory: files come and go; what is not a manifest does not count.
func TestFollowsADirectory(t *testing.T) {
	dir := t.TempDir()
	f := follow(t, dir)
	f.wantNodes("")
	f.wantReport("holds no *.yaml")
	write(t, filepath.Join(dir, "a.yaml"), node("a"))
	write(t, filepath.Join(dir, ".b.yaml"), node("b"))
	write(t, filepath.Join(dir, "c.yaml.swp"), "no manifest")
	f.wantNodes("a")
	f.wantReport("")
	replace(t, filepath.Join(dir, "d.json"), `{"apiVersion":"v1","kind":"Node","metadata":{"name":"d"}}`)
	f.wantNodes("a d")
	must(t, os.RemoveAll(filepath.Join(dir, "a.yaml")))
	f.wantNodes("d")
	must(t, os.Rename(filepath.Join(dir, ".b.yaml"), filepath.Join(dir, "b.yml")))
	f.wantNodes("b d")
}

// TestHalfWritten: what cannot be read changes nothing and is said once.
func TestHalfWritten(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	write(t, file, node("a"))
	f := follow(t, dir)
	f.wantNodes("a")
	before, _ := f.Snapshot()
	write(t, file, "---\n{apiVersion: v1, kind: Node, metadata: {name: ")
	f.wantReport("a.yaml: document 1: the YAML is malformed or cut off")
	write(t, filepath.Join(dir, "b.yaml"), "")
	f.wantReport("b.yaml: is empty")
	write(t, filepath.Join(dir, "b.yaml"), node("b"))
	wait.Until(t, "the first error alone again", func() error {
		all := f.reported()
		return wait.Check(len(all) == 3, "%s", strings.Join(all, "\n\n"))
	})
	if after, _ := f.Snapshot(); !maps.EqualFunc(before.Nodes, after.Nodes, labels.Equals) {
		t.Errorf("the last good Snapshot has nodes %v now", after.Nodes)
	}
	write(t, file, node("a")+node("c"))
	f.wantNodes("a b c")
	f.wantReport("")
	if got := f.reported(); len(got) != 4 {
		t.Errorf("%d reports, not two errors, the first one again and the end:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// TestSavedAgainByAnEditor: a file with other line ends has the same objects. If the YAML library
// ignores a part of a file, that file changes nothing.
func TestSavedAgainByAnEditor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	text := node("a") + node("b")
	write(t, file, text)
	f := follow(t, file)
	f.wantNodes("a b")
	for i, end := range []string{"\r", "\u0085"} {
		name := fmt.Sprintf("c%d", i)
		write(t, file, strings.ReplaceAll(text+node(name), "\n", end))
		f.wantNodes("a b " + name)
	}
	write(t, file, "{apiVersion: v1, kind: Node, metadata: {name: a}}\n{apiVersion: v1, kind: Node, metadata: {name: b}}\n")
	f.wantReport("a.yaml: document 1: more text follows the document")
	f.wantNodes("a b c1")
	write(t, file, text+"\x00")
	f.wantReport("holds NUL")
	f.wantNodes("a b c1")
}

// TestFollowsAConfigMap swaps a mounted ConfigMap as the kubelet does.
func TestFollowsAConfigMap(t *testing.T) {
	for _, given := range []string{"", "a.yaml"} {
		t.Run("path="+given, func(t *testing.T) {
			dir := t.TempDir()
			version := func(name, text string) {
				write(t, filepath.Join(dir, name, "a.yaml"), text)
				must(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
				must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
			}
			version("..1", node("one"))
			must(t, os.Symlink("..data/a.yaml", filepath.Join(dir, "a.yaml")))
			f := follow(t, filepath.Join(dir, given))
			f.wantNodes("one")
			version("..2", node("two"))
			must(t, os.RemoveAll(filepath.Join(dir, "..1")))
			f.wantNodes("two")
			version("..3", node("three"))
			must(t, os.RemoveAll(filepath.Join(dir, "..2")))
			f.wantNodes("three")
		})
	}
}

// TestFollowsLinks: a link may be changed anywhere on the way, and so may what it ends at.
func TestFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "v1/site/a.yaml"), node("one"))
	write(t, filepath.Join(dir, "v2/site/a.yaml"), node("two"))
	must(t, os.Symlink("v1", filepath.Join(dir, "current")))
	must(t, os.Symlink(filepath.Join(dir, "current/site"), filepath.Join(dir, "site")))
	f := follow(t, filepath.Join(dir, "site"))
	f.wantNodes("one")
	write(t, filepath.Join(dir, "v1/site/b.yaml"), node("b"))
	f.wantNodes("b one")
	must(t, os.Symlink("v2", filepath.Join(dir, "next")))
	must(t, os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "current")))
	f.wantNodes("two")
	write(t, filepath.Join(dir, "v2/site/a.yaml"), node("three"))
	f.wantNodes("three")
}

// TestDirectoryReplaced: a path that is gone is an error, and the objects stay until it is back.
func TestDirectoryReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	write(t, filepath.Join(dir, "a.yaml"), node("a"))
	f := follow(t, dir)
	f.wantNodes("a")
	must(t, os.Rename(dir, dir+".old"))
	f.wantReport("site: cannot be read: no such file or directory")
	if got := f.nodes(); got != "a" {
		t.Errorf("nodes %q once the directory is gone", got)
	}
	write(t, filepath.Join(dir, "b.yaml"), node("b"))
	f.wantNodes("b")
	write(t, filepath.Join(dir, "c.yaml"), node("c"))
	f.wantNodes("b c")
	write(t, filepath.Join(dir+".new", "d.yaml"), node("d"))
	must(t, os.Rename(dir, dir+".old2"))
	must(t, os.Rename(dir+".new", dir))
	f.wantNodes("d")
	write(t, filepath.Join(dir, "e.yaml"), node("e"))
	f.wantNodes("d e")
}

// TestPointersStay: an edit changes the object that was edited and no other.
func TestPointersStay(t *testing.T) {
	dir := t.TempDir()
	service := func(name, ip string) string {
		return "---\n{apiVersion: v1, kind: Service, metadata: {name: " + name + "}, spec: {clusterIP: " + ip + ", ports: [{port: 80}]}}\n"
	}
	write(t, filepath.Join(dir, "a.yaml"), service("a", "10.0.0.1")+service("b", "10.0.0.2")+node("n1"))
	write(t, filepath.Join(dir, "c.yaml"), service("c", "10.0.0.3"))
	f := follow(t, dir)
	f.wantNodes("n1")
	before, _ := f.Snapshot()
	write(t, filepath.Join(dir, "a.yaml"), service("b", "10.0.0.2")+"# a comment\n"+node("n1")+service("a", "10.0.0.7"))
	wait.Until(t, "the edit", func() error {
		s, _ := f.Snapshot()
		return wait.Check(s.Services[0].Spec.ClusterIP == "10.0.0.7", "%s", s.Services[0].Spec.ClusterIP)
	})
	after, _ := f.Snapshot()
	if before.Services[0].Spec.ClusterIP != "10.0.0.1" {
		t.Error("the old object was changed")
	}
	for i, want := range []bool{false, true, true} {
		if got := before.Services[i] == after.Services[i]; got != want {
			t.Errorf("Service %s the same object: %v", after.Services[i].Name, got)
		}
	}
	if before.Self != after.Self {
		t.Error("the node is another object")
	}
}

// TestSilentEdit: an edit that changes no object signals nothing.
func TestSilentEdit(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), node("a"))
	f := follow(t, dir)
	f.wantNodes("a")
	<-f.Changed()
	write(t, filepath.Join(dir, "a.yaml"), node("a")+"# a comment\n")
	write(t, filepath.Join(dir, "b.yaml"), "{apiVersion: v1, kind: Service, metadata: {name: left-out}, spec: {ports: [{port: 80}]}}\n")
	f.wantReport("the Service is left out") // so both have been read
	select {
	case <-f.Changed():
		t.Error("a comment and an object that is left out are signalled")
	default:
	}
}

// TestFirstReadFails: there is no earlier state to keep.
func TestFirstReadFails(t *testing.T) {
	m := NewManifests(ManifestConfig{Paths: []string{filepath.Join(t.TempDir(), "missing.yaml")}})
	if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "missing.yaml: cannot be read") {
		t.Errorf("Run returned %v", err)
	}
	if _, known := m.Snapshot(); known {
		t.Error("there is a Snapshot")
	}
}

// TestPolls: where the kernel does not tell of changes, they are found by looking, even of a file
// whose size and time stay the same because the file system's clock has not moved on.
func TestPolls(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	tick := time.Now()
	deaf := &folders{paths: []string{file}}
	r := manifest.NewReader([]string{file}, nil)
	for _, name := range []string{"a", "b", "c"} {
		write(t, file, node(name))
		must(t, os.Chtimes(file, tick, tick))
		if !deaf.wait(t.Context(), time.Millisecond, time.Millisecond) {
			t.Fatal("does not look again")
		}
		o, _, err := r.Read()
		if err != nil || len(o.Nodes) != 1 || o.Nodes[0].Name != name {
			t.Fatalf("read %v, not %s: %v", o.Nodes, name, err)
		}
	}
}

// TestStdinIsReadOnce: a source keeps what it read there.
func TestStdinIsReadOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	write(t, file, node("a"))
	r := manifest.NewReader([]string{manifest.Stdin, file}, strings.NewReader(node("in")))
	var first *corev1.Node
	for range 2 {
		o, _, err := r.Read()
		if err != nil || len(o.Nodes) != 2 || first != nil && o.Nodes[1] != first {
			t.Fatalf("read %v: %v", o.Nodes, err)
		}
		first = o.Nodes[1]
	}
	if _, _, err := manifest.NewReader([]string{manifest.Stdin}, nil).Read(); err == nil {
		t.Error("no standard input, no error")
	}
}
