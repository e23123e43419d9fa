package suites

import (
	"path"
	"slices"
	"strings"
	"time"
)

// Inputs are the files whose content decides how a suite ends. Folders are relative to the
// repository and have no slash at their end.
type Inputs struct {
	Tested  []string // folders of the packages whose tests run
	Depends []string // folders of all packages that are compiled into the tests and the programs they start
	Reads   []string // further files and folders
}

// always are the files that decide how everything is built.
var always = [...]string{"go.mod", "go.sum"}

// Has says whether a changed file is one of the inputs. A test file, and one in a folder testdata,
// counts only where its package is tested.
func (in Inputs) Has(file string) bool {
	if slices.Contains(always[:], file) {
		return true
	}
	for _, r := range in.Reads {
		if file == r || strings.HasPrefix(file, r+"/") {
			return true
		}
	}
	folder, _, testdata := strings.Cut(file, "/testdata/")
	if !testdata {
		folder = path.Dir(file)
	}
	if testdata || strings.HasSuffix(file, "_test.go") {
		return slices.Contains(in.Tested, folder)
	}
	return slices.Contains(in.Depends, folder)
}

// Order sorts suites for CI: first those with an input among the changed files, as they stand in
// the table, then the others, beginning with another one each day, so that every suite comes first
// in its turn. changed is how many are in the first part.
func Order(table []Suite, inputs map[string]Inputs, files []string, day time.Time) (ordered []Suite, changed int) {
	var rest []Suite
	for _, s := range table {
		if slices.ContainsFunc(files, inputs[s.Name].Has) {
			ordered = append(ordered, s)
		} else {
			rest = append(rest, s)
		}
	}
	changed = len(ordered)
	if len(rest) == 0 {
		return ordered, changed
	}
	first := int(day.Unix()/int64(24*time.Hour/time.Second)) % len(rest)
	return slices.Concat(ordered, rest[first:], rest[:first]), changed
}
