package suites

import (
	"bytes"
	"crypto/sha256"
	"path"
	"slices"
	"strings"
)

// IsNear reports whether a change of a file brings the suite to the front of a run of CI: the file
// is in a package that it tests, in a folder of About, or in Reads. A test file, and one in a
// folder testdata, counts only where its package is tested.
func (s Suite) IsNear(file string) bool {
	folder, _, testdata := strings.Cut(file, "/testdata/")
	if !testdata {
		folder = path.Dir(file)
	}
	ofTest := testdata || strings.HasSuffix(file, "_test.go")
	return s.hasPackage(folder) || isBelow(file, s.Reads) || !ofTest && isBelow(file, s.About)
}

// hasPackage reports whether the suite tests the package in a folder of the repository.
func (s Suite) hasPackage(folder string) bool {
	return slices.ContainsFunc(s.Packages, func(pattern string) bool {
		top, below := strings.CutSuffix(pattern, "/...")
		top = path.Join(s.Module, top)
		return folder == top || below && strings.HasPrefix(folder, top+"/")
	})
}

// isBelow reports whether a file is one of these paths, or in a folder that is one of them.
func isBelow(file string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return file == p || strings.HasPrefix(file, p+"/") })
}

// Order returns which suites a run of CI starts after the core tier, and in which order: first
// those that are near to a changed file, then one of the rare ones, then all others that are not
// rare. Seed, the hash of a commit, shuffles each part, so each suite of a part has the same
// chance in every run, and a run can be repeated. near is how many are in the first part.
func Order(table []Suite, files []string, seed string) (ordered []Suite, near int) {
	var rare, others []Suite
	for _, s := range shuffled(table, seed) {
		switch {
		case slices.ContainsFunc(files, s.IsNear):
			ordered = append(ordered, s)
		case !s.Rare:
			others = append(others, s)
		case rare == nil:
			rare = []Suite{s}
		}
	}
	return slices.Concat(ordered, rare, others), len(ordered)
}

// shuffled returns suites in the order of the hashes of seed and name. A new row changes the order
// of no others.
func shuffled(table []Suite, seed string) []Suite {
	hash := func(s Suite) []byte {
		sum := sha256.Sum256([]byte(seed + " " + s.Name))
		return sum[:]
	}
	return slices.SortedFunc(slices.Values(table), func(a, b Suite) int { return bytes.Compare(hash(a), hash(b)) })
}
