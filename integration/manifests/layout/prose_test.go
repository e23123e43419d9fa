package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestCheckComments(t *testing.T) {
	source := `package p

// somebody breaks the rule, in a comment.
const text = "somebody in a string is no prose"

/* a comment
   that is made Anew */
//go:generate somebody
func f() { g() } // in order
// to: over two lines it is not found
`
	var got []int
	for _, f := range Check(Rules(), OfGo([]byte(source))) {
		got = append(got, f.Line)
	}
	if want := []int{3, 7}; !slices.Equal(got, want) {
		t.Errorf("findings in the lines %v, want %v", got, want)
	}
}

func TestCheckPages(t *testing.T) {
	page := "Nobody knows.\n```\nnobody in code\n```\nThe commended amendment stands.\nIt is mended.\n"
	var got []int
	for _, f := range Check(Rules(), OfPage(page)) {
		got = append(got, f.Line)
	}
	if want := []int{1, 6}; !slices.Equal(got, want) {
		t.Errorf("findings in the lines %v, want %v", got, want)
	}
}

func TestCheckColumns(t *testing.T) {
	long := "// " + strings.Repeat("ä", MaxColumns)
	if found := Check(nil, OfGo([]byte("package p\n\n"+long+"\n"))); len(found) != 1 || found[0].Line != 3 {
		t.Errorf("of a comment of %d columns it is said: %v", MaxColumns+3, found)
	}
	if found := Check(nil, OfPage(long)); len(found) > 0 {
		t.Errorf("a line of a page may be long, yet: %v", found)
	}
}

func TestAdded(t *testing.T) {
	diff := "--- a/x\n+++ b/x\n@@ -3 +3,2 @@ func f()\n-old\n+new\n+more\n@@ -9,2 +10,0 @@\n-a\n-b\n@@ -20,0 +20 @@\n+last\n"
	if got, want := Added(diff), map[int]bool{3: true, 4: true, 20: true}; !maps.Equal(got, want) {
		t.Errorf("added are %v, want %v", got, want)
	}
}
