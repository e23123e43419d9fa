package layout

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The folders and files at the top of the repository; hidden ones come from git and CI.
var top = []string{
	"cmd", "rules", "topology", "controller", "integration", "deploy", "docs",
	"go.mod", "go.sum", "Makefile", "Dockerfile", "LICENSE",
	"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
}

// largestFile is the limit of one file in bytes: a program that was built is larger.
const largestFile = 1 << 20

// TestFiles: no program and no stray file is in the repository.
func TestFiles(t *testing.T) {
	const root = "../../.."
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("listing the files of the repository: %v", err)
	}
	for name := range bytes.SplitSeq(bytes.TrimRight(out, "\x00"), []byte{0}) {
		first, _, _ := strings.Cut(string(name), "/")
		if !strings.HasPrefix(first, ".") && !slices.Contains(top, first) {
			t.Errorf("%s: %s is not one of the folders and files at the top; remove it, or add it to top", name, first)
		}
		info, err := os.Lstat(filepath.Join(root, string(name)))
		switch {
		case os.IsNotExist(err): // deleted, and not committed yet
		case err != nil:
			t.Error(err)
		case info.Size() > largestFile:
			t.Errorf("%s has %d bytes, more than %d: is it a program?", name, info.Size(), largestFile)
		}
	}
}
