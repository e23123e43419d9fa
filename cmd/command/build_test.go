package command

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestBuildOf(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v0.0.1"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	for _, test := range []struct {
		name              string
		info              *debug.BuildInfo
		version, revision string
		want              Build
	}{
		{"nobody knows", &debug.BuildInfo{}, "", "", Build{Version: "(devel)", Commit: "unknown"}},
		{"go build knows", info, "", "", Build{Version: "v0.0.1", Commit: "abc", Time: "2026-01-02T03:04:05Z", Modified: true}},
		{"only the version was said", info, "1.0", "", Build{Version: "1.0", Commit: "abc", Time: "2026-01-02T03:04:05Z", Modified: true}},
		{"both were said", info, "1.0", "def", Build{Version: "1.0", Commit: "def"}},
		{"the files differ", &debug.BuildInfo{}, "1.0", "def-dirty", Build{Version: "1.0", Commit: "def", Modified: true}},
	} {
		test.want.Go, test.want.Platform = runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
		if got := buildOf(test.info, test.version, test.revision); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// TestLinkedNames: the Dockerfile and the Makefile name variables that there are. The linker says
// nothing of others.
func TestLinkedNames(t *testing.T) {
	for file, want := range map[string][]string{"Dockerfile": {"said-version", "said-revision"}, "Makefile": {"said-version"}} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		var flags []string
		for _, m := range regexp.MustCompile(`-X (\S+)=`).FindAllStringSubmatch(string(text), -1) {
			flags = append(flags, "-X "+m[1]+"=said-"+m[1][strings.LastIndex(m[1], ".")+1:])
		}
		program := filepath.Join(t.TempDir(), "program")
		if out, err := exec.Command("go", "build", "-ldflags", strings.Join(flags, " "), "-o", program, "./testdata/thisbuild").CombinedOutput(); err != nil {
			t.Fatalf("building with %s: %v\n%s", flags, err, out)
		}
		out, err := exec.Command(program).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !bytes.Contains(out, []byte(w)) {
				t.Errorf("%s links %s, and the program says\n%s, without %s", file, flags, out, w)
			}
		}
	}
}

func TestModifiedBuildSaysSo(t *testing.T) {
	var out bytes.Buffer
	if err := (Build{Version: "v1", Commit: "abc", Modified: true}).WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "abc (modified)\n") || !strings.Contains(out.String(), "Time:      unknown\n") {
		t.Errorf("got:\n%s", out.String())
	}
}
