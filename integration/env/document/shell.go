package document

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"

	"k8s.io/client-go/rest"
)

// Shell is where a reader types: a folder that is his home too, with a kubeconfig in ~/.kube/config.
type Shell struct {
	Dir       string
	Env       []string            // beside the test's own
	Namespace apiserver.Namespace // the network; nil = this machine's
}

// NewShell makes the folder. Programs stand before those of PATH, by the names that the document calls them.
func NewShell(t testing.TB, admin *rest.Config, programs map[string]string) Shell {
	t.Helper()
	s := Shell{Dir: t.TempDir()}
	for _, dir := range []string{s.bin(), filepath.Join(s.Dir, ".kube")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := apiserver.WriteKubeconfig(filepath.Join(s.Dir, ".kube"), "config", admin); err != nil {
		t.Fatal(err)
	}
	for name, path := range programs {
		s.Link(t, filepath.Join("bin", name), path)
	}
	return s
}

func (s Shell) bin() string { return filepath.Join(s.Dir, "bin") }

// Link puts a file or folder into the Shell's, as the document expects to find it.
func (s Shell) Link(t testing.TB, name, path string) {
	t.Helper()
	path, err := filepath.Abs(path)
	if err == nil {
		err = os.Symlink(path, filepath.Join(s.Dir, name))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Follow runs the commands below a heading of the document, and returns what they printed.
func (s Shell) Follow(t testing.TB, d Document, heading string) string {
	t.Helper()
	script, err := d.Commands(heading)
	if err != nil {
		t.Fatal(err)
	}
	return s.Run(t, script)
}

// Run runs a script whose commands all have to succeed, and returns what it printed.
func (s Shell) Run(t testing.TB, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", script)
	cmd.Dir, cmd.Env = s.Dir, s.environment()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := apiserver.Within(s.Namespace, cmd.Run); err != nil {
		t.Fatalf("%s\n%v: %s%s", script, err, out.Bytes(), problems.Bytes())
	}
	return out.String()
}

// Type is Run for what an administrator types; it logs the script, and how long that took.
func (s Shell) Type(t testing.TB, format string, args ...any) string {
	t.Helper()
	script := fmt.Sprintf(format, args...)
	begin := time.Now()
	out := s.Run(t, script)
	t.Logf("%5.1fs  %s", time.Since(begin).Seconds(), script)
	return out
}

func (s Shell) environment() []string {
	all := append(os.Environ(), "HOME="+s.Dir, "PATH="+s.bin()+string(os.PathListSeparator)+os.Getenv("PATH"))
	return append(all, s.Env...)
}
