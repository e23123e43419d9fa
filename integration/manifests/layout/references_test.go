package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// faults is the document that defines ids such as B-14.
const faults = "docs/superedge-faults.md"

var (
	// faultID is a fault of SuperEdge's, in prose and in the names of tests.
	faultID = regexp.MustCompile(`\b([BDSW])-(\d{2})\b|\bTest([BSW])(\d{2})`)
	// faultRow is a line of the table.
	faultRow = regexp.MustCompile("^\\| ([BDSW]-\\d{2}) \\| .+ \\| (`Test\\w+`(?:, `Test\\w+`)*) \\|$")
	testName = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	// elsewhere are references to documents that a reader does not have.
	elsewhere = regexp.MustCompile(`(?i)\bdesign(?:\.md)? \d+(?:\.\d+)?\b|\bvectors? [A-Z\d]\w*`)
)

// root is the root of the repository, seen from this folder.
const root = "../../.."

// eachText visits the files of the module that people read.
func eachText(t *testing.T, visit func(name, text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() && (name == ".git" || name == "bin") {
			return filepath.SkipDir
		}
		switch filepath.Ext(name) {
		case ".go", ".md", ".txtar", ".yaml":
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			visit(filepath.ToSlash(name), string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReferences: each id of a fault of SuperEdge is defined in one line of one document, with
// tests that exist, and nothing refers to a document that is not here.
func TestReferences(t *testing.T) {
	defined, tests := map[string][]string{}, map[string]bool{}
	eachText(t, func(name, text string) {
		for _, found := range testName.FindAllStringSubmatch(text, -1) {
			tests[found[1]] = true
		}
		if name != faults {
			return
		}
		for line := range strings.Lines(text) {
			row := faultRow.FindStringSubmatch(strings.TrimSpace(line))
			switch {
			case row != nil && defined[row[1]] != nil:
				t.Errorf("%s: %s is defined twice", name, row[1])
			case row != nil:
				defined[row[1]] = strings.Split(row[2], ", ")
			case faultID.MatchString(line) && strings.HasPrefix(line, "|"):
				t.Errorf("%s: %q is no line of the table: | id | what SuperEdge does | `TestName`, … |", name, strings.TrimSpace(line))
			}
		}
	})
	for id, names := range defined {
		for _, name := range names {
			if !tests[strings.Trim(name, "`")] {
				t.Errorf("%s: %s names %s, which is no test", faults, id, name)
			}
		}
	}
	eachText(t, func(name, text string) {
		for _, found := range faultID.FindAllStringSubmatch(text, -1) {
			id := found[1] + found[3] + "-" + found[2] + found[4]
			if defined[id] == nil {
				t.Errorf("%s: %s is not in %s", name, id, faults)
			}
		}
		for _, found := range elsewhere.FindAllString(text, -1) {
			t.Errorf("%s: %q refers to what a reader does not have", name, found)
		}
	})
}
