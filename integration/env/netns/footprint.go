package netns

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Footprint is what this program has on the computer: its control groups, its children, and its mounts and links.
func Footprint(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintln(&b, "control groups:", ControlGroups("gridproxy-"+strconv.Itoa(os.Getpid())+"-"))
	children, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range children {
		content, _ := os.ReadFile(file) // the thread may have ended
		for _, pid := range strings.Fields(string(content)) {
			command, _ := os.ReadFile("/proc/" + pid + "/cmdline") // empty: it has ended, and nothing has waited for it
			fmt.Fprintf(&b, "child: %s %q\n", pid, command)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "mounts: %d\n", strings.Count(string(mounts), "\n"))
	links, err := os.ReadDir("/sys/class/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		fmt.Fprintln(&b, "link:", link.Name())
	}
	return b.String()
}

// ControlGroups are the control groups whose names begin so.
func ControlGroups(prefix string) (all []string) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil: // it has just gone
			return fs.SkipDir
		case e.IsDir() && strings.HasPrefix(e.Name(), prefix):
			all = append(all, path)
			return fs.SkipDir
		}
		return nil
	})
	return all
}
