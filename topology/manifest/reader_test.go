package manifest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestReaderFollowsHistory: after any history of files, a Reader returns what reading everything
// for the first time returns. A read in which no file differs hands out the lists of the one
// before.
func TestReaderFollowsHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		files := historyOfFiles{dir: dir, written: time.Now().Add(-time.Hour)}
		r := NewReader([]string{dir}, nil)
		var before Objects
		for range rapid.IntRange(1, 8).Draw(t, "reads") {
			changed := false
			for range rapid.IntRange(0, 2).Draw(t, "changes") {
				files.change(t)
				changed = true
			}
			objects, warnings, err := r.Read()
			want, wantWarnings, wantErr := Read([]string{dir}, nil)
			if diff := cmp.Diff([]any{want, wantWarnings, fmt.Sprint(wantErr)}, []any{objects, warnings, fmt.Sprint(err)}); diff != "" {
				t.Fatalf("(-read for the first time +again):\n%s", diff)
			}
			if !changed && before.Services != nil && (!r.Unchanged() || &before.Services[:1][0] != &objects.Services[:1][0]) {
				t.Fatal("no file differs, yet the outcome was made again")
			}
			if before = objects; cap(before.Services) == 0 {
				before.Services = nil
			}
		}
	})
}

// TestReaderSeesRestoredTimes: a file of the same size whose time of modification was set back, as
// cp -p and tar do it, has other content all the same.
func TestReaderSeesRestoredTimes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "web.yaml")
	old := time.Now().Add(-time.Hour)
	write := func(clusterIP string) {
		text := "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {clusterIP: " + clusterIP + ", ports: [{port: 80}]}\n"
		if err := errors.Join(os.WriteFile(name, []byte(text), 0o600), os.Chtimes(name, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	r := NewReader([]string{name}, nil)
	for _, want := range []string{"10.96.0.1", "10.96.0.2"} {
		write(want)
		objects, _, err := r.Read()
		if err != nil || objects.Services[0].Spec.ClusterIP != want {
			t.Errorf("%v, %v; want %s", objects.Services, err, want)
		}
	}
}

// historyOfFiles writes files, each with a time of change of its own, long ago: a file that was
// changed just now is read twice.
type historyOfFiles struct {
	dir     string
	written time.Time
}

func (h *historyOfFiles) change(t *rapid.T) {
	name := filepath.Join(h.dir, rapid.SampledFrom([]string{"a.yaml", "b.yaml", "c.json", "d.txt"}).Draw(t, "file"))
	var err error
	switch what := rapid.SampledFrom([]string{"write", "write", "write", "remove", "link", "folder"}).Draw(t, "change"); what {
	case "remove":
		err = os.RemoveAll(name)
	case "link":
		_ = os.RemoveAll(name)
		err = os.Symlink(filepath.Join(h.dir, rapid.SampledFrom([]string{"a.yaml", "d.txt", "gone"}).Draw(t, "target")), name)
	case "folder":
		_ = os.RemoveAll(name)
		err = os.Mkdir(name, 0o700)
	default:
		_ = os.RemoveAll(name)
		text := ""
		for range rapid.IntRange(0, 2).Draw(t, "objects") {
			text += fmt.Sprintf(`{"apiVersion": "v1", "kind": %q, "metadata": {"name": %q}, "spec": {"clusterIP": %q, "ports": [{"port": 80}]}}`+"\n",
				rapid.SampledFrom([]string{"Service", "Service", "Pod"}).Draw(t, "kind"),
				rapid.SampledFrom([]string{"web", "api", "dns"}).Draw(t, "name"),
				rapid.SampledFrom([]string{"10.96.0.1", "10.96.0.2", "10.96.0.3", "nonsense"}).Draw(t, "cluster IP"))
		}
		if err = os.WriteFile(name, []byte(text), 0o600); err == nil {
			h.written = h.written.Add(time.Second)
			err = os.Chtimes(name, h.written, h.written)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
