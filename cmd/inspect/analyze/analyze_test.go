package analyze

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridproxy/controller/gridspec"
	"gridproxy/topology"
	"gridproxy/topology/manifest"
	"gridproxy/topology/topologytest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// contentsOf reads manifests as the command does.
func contentsOf(t *testing.T, text string) (topology.Snapshot, []gridspec.Grid) {
	t.Helper()
	var kinds []schema.GroupVersionKind
	for _, k := range gridspec.Kinds() {
		kinds = append(kinds, k.GroupVersionKind())
	}
	contents, _, err := manifest.ReadWith([]string{"-"}, strings.NewReader(text), kinds...)
	if err != nil {
		t.Fatal(err)
	}
	var grids []gridspec.Grid
	for _, raw := range contents.Further {
		g, err := gridspec.ReadGrid(gridspec.Kind(raw.Kind), raw.Decode)
		if err != nil {
			t.Fatal(err)
		}
		grids = append(grids, g)
	}
	return contents.Snapshot(""), grids
}

func textOf(t *testing.T, r Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestEachCode reads testdata/CODE.txtar: wrong.yaml has the findings in findings.txt, one of them
// of this code, and right.yaml has none of it. An archive without right.yaml uses
// testdata/right.yaml. The Nodes of testdata/nodes.yaml exist too. With UPDATE=1 the test writes
// the present findings into the files instead.
func TestEachCode(t *testing.T) {
	nodes, err := os.ReadFile("testdata/nodes.yaml")
	right, errRight := os.ReadFile("testdata/right.yaml")
	if err := errors.Join(err, errRight); err != nil {
		t.Fatal(err)
	}
	analyze := func(text []byte) Report {
		snapshot, grids := contentsOf(t, string(nodes)+"---\n"+string(text))
		return Analyze(snapshot, Config{Grids: grids})
	}
	for _, code := range Codes() {
		t.Run(code.ID, func(t *testing.T) {
			path := filepath.Join("testdata", code.ID+".txtar")
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			reports := map[string]Report{"right.yaml": analyze(right)}
			for i, f := range archive.Files {
				switch f.Name {
				case "wrong.yaml", "right.yaml":
					reports[f.Name] = analyze(f.Data)
				case "findings.txt":
					got := textOf(t, reports["wrong.yaml"])
					archive.Files[i].Data = []byte(got)
					if diff := cmp.Diff(string(f.Data), got); diff != "" && os.Getenv("UPDATE") == "" {
						t.Errorf("findings in wrong.yaml (-want +got):\n%s", diff)
					}
				default:
					t.Errorf("%s has a file %s", path, f.Name)
				}
			}
			if len(reports) != 2 || !has(reports["wrong.yaml"], code) || has(reports["right.yaml"], code) {
				t.Errorf("want a finding in wrong.yaml and none in right.yaml; that has:\n%s", textOf(t, reports["right.yaml"]))
			}
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func has(r Report, code Code) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Code == code.ID && f.Severity == code.Severity })
}

// BenchmarkAnalyze measures 1,000 Services, closed by zone, with an endpoint in each of 100 zones,
// and 50 Nodes in each zone. Most of the time is spent in package matrix.
func BenchmarkAnalyze(b *testing.B) {
	s := topologytest.Large{Services: 1000, Endpoints: 100, Nodes: 5000}.Snapshot()
	b.ReportAllocs()
	for b.Loop() {
		Analyze(s, Config{})
	}
}
