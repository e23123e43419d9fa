package render

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/rulestest"
	"gridproxy/topology"

	textdiff "github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// TestGolden renders the objects of each testdata/*.txtar for each of its other files, named "NODE
// FAMILY FLAG...", and compares their content. UPDATE=1 rewrites them: read the difference before
// you commit it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata/*.txtar: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(archive.Files) < 2 || archive.Files[0].Name != "objects.yaml" {
				t.Fatal("want objects.yaml first and what it becomes behind it")
			}
			snapshot := readObjects(t, archive.Files[0].Data)
			for i, f := range archive.Files[1:] {
				got := goldenCase(t, snapshot, strings.Fields(f.Name))
				archive.Files[i+1].Data = []byte(got)
				if d := textdiff.Diff("want", f.Data, "got", []byte(got)); d != nil && os.Getenv("UPDATE") == "" {
					t.Errorf("%s:\n%s", f.Name, d)
				}
			}
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// goldenCase is the text for one node, family and set of flags.
func goldenCase(t *testing.T, s topology.Snapshot, words []string) string {
	t.Helper()
	s.Node = words[0]
	o := Options{MasqueradeBit: 14, RandomFully: true, DropInvalid: true}
	if words[1] == "ipv6" {
		o.Family = netfilter.IPv6
	}
	config := rules.Config{}
	for _, flag := range words[2:] {
		name, value, _ := strings.Cut(flag, "=")
		switch name {
		case "cluster-cidr":
			for p := range strings.SplitSeq(value, ",") {
				config.DetectLocal.ClusterCIDRs = append(config.DetectLocal.ClusterCIDRs, netip.MustParsePrefix(p))
			}
		case "localhost-nodeports":
			config.LocalhostNodePorts = true
		case "nfacct":
			o.NFAcct = true
		case "ipvs":
			o.IPVS = true
		default:
			t.Fatalf("flag %q is unknown to this test", flag)
		}
	}
	rs := rules.Compile(topology.Resolve(s, topology.Config{}), config)
	if o.IPVS {
		rs = rulestest.Residual{}.Of(rs)
	}
	return rendered(t, Ruleset(rs, o))
}

// readObjects reads full objects from many documents, as an API server would return them.
func readObjects(t *testing.T, text []byte) topology.Snapshot {
	t.Helper()
	s := topology.Snapshot{Nodes: map[string]labels.Set{}, Host: topology.Host{IPv4: true, IPv6: true}}
	for i, doc := range strings.Split(string(text), "\n---\n") {
		var kind struct{ Kind string }
		var err error
		if err = yaml.Unmarshal([]byte(doc), &kind); err == nil {
			switch kind.Kind {
			case "Service":
				err = readObject(doc, func(o *corev1.Service) { s.Services = append(s.Services, o) })
			case "EndpointSlice":
				err = readObject(doc, func(o *discoveryv1.EndpointSlice) { s.Slices = append(s.Slices, topology.NewSlice(o)) })
			case "Node":
				err = readObject(doc, func(o *corev1.Node) { s.Nodes[o.Name] = o.Labels })
			default:
				err = fmt.Errorf("kind %q", kind.Kind)
			}
		}
		if err != nil {
			t.Fatalf("document %d: %v", i+1, err)
		}
	}
	return s
}

func readObject[T any](doc string, use func(*T)) error {
	var o T
	if err := yaml.UnmarshalStrict([]byte(doc), &o); err != nil {
		return err
	}
	use(&o)
	return nil
}
