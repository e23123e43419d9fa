package moveover

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/integration/cluster"
	"gridproxy/integration/controlplane"

	"k8s.io/client-go/rest"
)

const documentFile = "../../docs/migrate-from-superedge.md"

// shell runs the commands of the document as its reader would: in a folder that has what the repository has, with
// kubectl and grid-controller in PATH and a kubeconfig in ~/.kube/config.
type shell struct{ dir, path string }

func newShell(t *testing.T, tools controlplane.Tools, admin *rest.Config) shell {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s := shell{dir: t.TempDir()}
	bin := filepath.Join(s.dir, "bin")
	must(os.Mkdir(bin, 0o755))
	must(os.MkdirAll(filepath.Join(s.dir, ".kube"), 0o755))
	_, err := controlplane.WriteKubeconfig(filepath.Join(s.dir, ".kube"), "config", admin)
	must(err)
	_, err = cluster.BuildGridController(t.Context(), bin)
	must(err)
	must(os.Symlink(tools.Path("kubectl"), filepath.Join(bin, "kubectl")))
	deploy, err := filepath.Abs("../../deploy")
	must(err)
	must(os.Symlink(deploy, filepath.Join(s.dir, "deploy")))
	s.path = bin + string(os.PathListSeparator) + os.Getenv("PATH")
	return s
}

func (s shell) controller() string { return filepath.Join(s.dir, "bin", "grid-controller") }

// follow runs the commands below a heading of the document, and returns what they printed.
func (s shell) follow(t *testing.T, heading string) string {
	t.Helper()
	return s.run(t, commands(t, heading))
}

func (s shell) run(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", script)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "PATH="+s.path)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s\n%v: %s%s", script, err, out, problems.Bytes())
	}
	return string(out)
}

// commands are the lines in the sh blocks below a heading, up to the next one.
func commands(t *testing.T, heading string) string {
	t.Helper()
	content, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	here, inside := false, false
	for line := range strings.SplitSeq(string(content), "\n") {
		switch {
		case line == "```sh" || line == "```":
			inside = line == "```sh"
		case inside && here:
			lines = append(lines, line)
		case strings.HasPrefix(line, "#"):
			here = strings.TrimLeft(line, "# ") == heading
		}
	}
	if len(lines) == 0 {
		t.Fatalf("%s has no commands below a heading %q", documentFile, heading)
	}
	return strings.Join(lines, "\n")
}
