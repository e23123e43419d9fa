package man

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/cmd/command"

	"github.com/spf13/cobra"
)

// TestManPageDate: a page has the date of the commit, else none of today's, so that it is the same
// in each build.
func TestManPageDate(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1900000000")
	for commit, want := range map[string]string{"2024-03-31T23:30:00-05:00": "Apr 2024", "": "Jan 1970"} {
		root := &cobra.Command{Use: "program", Short: "Do it", Long: "Do *it*\n  a_b  c\n", Run: func(*cobra.Command, []string) {}}
		dir := t.TempDir()
		if err := writeManPages(root, dir, command.Build{Version: "1.0", Time: commit}); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(filepath.Join(dir, "program.1"))
		if err != nil {
			t.Fatal(err)
		}
		if heading := `"` + want + `" "program 1.0"`; !strings.Contains(string(page), heading) || strings.Contains(string(page), "HISTORY") {
			t.Errorf("commit of %q: want %s in\n%s", commit, heading, page)
		}
		if !strings.Contains(string(page), "Do *it*") {
			t.Errorf("characters are taken for markup:\n%s", page)
		}
	}
}
