package layout

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/document"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/program"
	"gridproxy/integration/suites"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"
)

// site is a set of pages, and what they may refer to.
type site struct {
	t        *testing.T
	texts    map[string]string // of pages, by their paths from the root
	pages    map[string]document.Page
	programs map[string]string // paths of our programs, by the words that call them
	makefile string
	values   any // of the chart
}

// newSite builds the programs.
func newSite(t *testing.T, texts map[string]string) *site {
	t.Helper()
	s := &site{t: t, texts: texts, pages: map[string]document.Page{}, programs: map[string]string{}}
	for name, text := range texts {
		s.pages[name] = document.Parse(text)
	}
	for words, folder := range map[string]string{
		"gridproxy": program.Gridproxy, "grid-controller": program.GridController, "grid-dns": program.GridDNS, "kubectl grid": program.KubectlGrid,
	} {
		s.programs[words] = program.ForTest(t, folder)
	}
	s.makefile = read(t, "Makefile")
	if err := yaml.Unmarshal([]byte(read(t, "deploy/charts/gridproxy/values.yaml")), &s.values); err != nil {
		t.Fatal(err)
	}
	return s
}

// read returns the text of a file, by its path from the root.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPages: on every page links lead somewhere, commands exist, and the English is right.
func TestPages(t *testing.T) {
	list := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md", ":!**/testdata/**")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("listing the pages of the repository: %v", err)
	}
	texts := map[string]string{}
	for _, name := range strings.Fields(string(out)) {
		texts[name] = read(t, name)
	}
	if len(texts) < 50 {
		t.Fatalf("there are only %d pages", len(texts))
	}
	for _, f := range newSite(t, texts).findings() {
		t.Error(f)
	}
}

// TestPagesWithFaults: each check finds a page that breaks it.
func TestPagesWithFaults(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/faults.txtar")
	if err != nil {
		t.Fatal(err)
	}
	texts, want := map[string]string{}, ""
	for _, f := range archive.Files {
		if f.Name == "findings" {
			want = string(f.Data)
			continue
		}
		texts[f.Name] = string(f.Data)
	}
	got := strings.Join(newSite(t, texts).findings(), "\n") + "\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func (s *site) findings() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.pages)) {
		report := func(line int, format string, args ...any) {
			all = append(all, fmt.Sprintf("%s:%d: ", name, line)+fmt.Sprintf(format, args...))
		}
		s.checkLinks(name, report)
		s.checkBlocks(name, report)
		for _, c := range s.calls(name) {
			s.checkCall(c.words, func(format string, args ...any) { report(c.line, format, args...) })
		}
	}
	return append(all, s.misspelt()...)
}

// checkLinks checks that files and headings of relative links exist.
func (s *site) checkLinks(name string, report func(int, string, ...any)) {
	for _, l := range s.pages[name].Links {
		if strings.Contains(l.Text, "://") || strings.HasPrefix(l.Text, "mailto:") {
			continue
		}
		file, anchor, _ := strings.Cut(l.Text, "#")
		target := name
		if file != "" {
			target = path.Join(path.Dir(name), file)
		}
		to, isPage := s.pages[target]
		if _, err := os.Stat(filepath.Join(root, target)); err != nil && !isPage || strings.HasPrefix(target, "..") {
			report(l.Line, "the link %s leads to %s, which does not exist", l.Text, target)
		} else if anchor != "" && !to.Anchors[anchor] {
			report(l.Line, "the link %s leads to no heading of %s", l.Text, target)
		}
	}
}

// checkBlocks checks that each block with commands is marked as one, and that a shell can read it.
func (s *site) checkBlocks(name string, report func(int, string, ...any)) {
	known := []string{"gridproxy", "grid-controller", "grid-dns", "kubectl", "make", "helm", "docker", "kubeadm", "go"}
	examples, err := s.pages[name].Examples()
	if err != nil {
		report(0, "%v", err)
	}
	for _, e := range examples {
		for _, c := range e.Commands {
			known = append(known, strings.Fields(c.Text)[0])
		}
	}
	for _, b := range s.pages[name].Blocks {
		if b.Language != "" {
			continue
		}
		for i, line := range b.Lines {
			first, _, _ := strings.Cut(strings.TrimPrefix(line, "$ "), " ")
			if strings.HasPrefix(line, "$ ") || slices.Contains(known, first) {
				report(b.Line+i, "a block with commands begins with ```sh, or with ```console if it has their output too")
				break
			}
		}
	}
}

// misspelt returns the phrases to avoid in the text of all pages, and what codespell finds there.
func (s *site) misspelt() []string {
	need.Tools(s.t, "run `apt-get install codespell`", "codespell")
	dir := s.t.TempDir()
	for name, text := range s.texts {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	folder, err := filepath.Abs(filepath.Join(root, "integration/suites"))
	if err != nil {
		s.t.Fatal(err)
	}
	pages := slices.Sorted(maps.Keys(s.texts))
	// run returns what a program prints, line by line. code is its exit code after a finding.
	run := func(code int, name string, args ...string) []string {
		command := exec.CommandContext(s.t.Context(), name, append(args, pages...)...)
		command.Dir = dir
		out, err := command.CombinedOutput()
		if err != nil && command.ProcessState.ExitCode() != code {
			s.t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
	}
	return append(run(1, folder+"/phrases", ".*"), run(65, "codespell", "--ignore-words="+folder+"/lint.words")...)
}

// targets are what make can be asked for.
func (s *site) targets() []string {
	all := suites.MakeTargets(s.makefile)
	for _, suite := range suites.All() {
		all = append(all, suite.Name)
	}
	return all
}
