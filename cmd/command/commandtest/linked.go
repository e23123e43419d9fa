package commandtest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Linked checks that the program in the current folder links own, which shows that the list of
// packages is right, and no package for which refused returns true.
func Linked(t *testing.T, own string, refused func(name string) bool) {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, own) {
		t.Fatalf("%s is not linked: the list of packages is not that of this program", own)
	}
	for _, name := range linked {
		if refused(name) {
			t.Errorf("the program links %s", name)
		}
	}
}
