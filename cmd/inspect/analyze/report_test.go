package analyze

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"gridproxy/controller/gridspec"
	"gridproxy/rules"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"
	"gridproxy/topology/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/rogpeppe/go-internal/txtar"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestSampleSite: the sample has one Service that a unit refuses, as its comment says, and nothing
// else is wrong with it.
func TestSampleSite(t *testing.T) {
	objects, _, err := manifest.Read([]string{"../../../deploy/samples/site"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := Analyze(objects.Snapshot(""), Config{})
	if len(r.Findings) != 1 || r.Findings[0].Code != unitRefused || r.Findings[0].Object.String() != "Service default/orders" {
		t.Errorf("findings:\n%s", textOf(t, r))
	}
}

// service is closed by an annotation.
func service(namespace, name, keys string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{topology.AnnotationKeys: keys}},
		Spec: corev1.ServiceSpec{
			ClusterIP: "172.16.0.1", ClusterIPs: []string{"172.16.0.1"}, Ports: []corev1.ServicePort{{Port: 80, Protocol: "TCP"}},
		},
	}
}

func snapshot(services ...*corev1.Service) topology.Snapshot {
	return topology.Snapshot{Nodes: map[string]labels.Set{"bj-1": {"location": "beijing"}}, Services: services}
}

// slice returns an EndpointSlice of a Service in namespace a.
func slice(name, service string, endpoints ...topology.SliceEndpoint) *topology.Slice {
	ports := []topology.SlicePort{{Protocol: "TCP", Number: 80}}
	return &topology.Slice{Namespace: "a", Name: name, Service: service, Ports: ports, Endpoints: endpoints}
}

func endpoint(node string, ready bool) topology.SliceEndpoint {
	return topology.SliceEndpoint{Addr: netip.MustParseAddr("10.0.0.1"), Node: node, Ready: ready}
}

// pathsOf returns the objects with a finding of a code.
func pathsOf(r Report, code string) []string {
	var paths []string
	for _, f := range r.Findings {
		if f.Code == code {
			paths = append(paths, f.Object.path())
		}
	}
	return paths
}

// TestHeadless: the annotation of a headless Service has an effect where grid-dns answers, which is
// not known of a cluster, and may be malformed everywhere.
func TestHeadless(t *testing.T) {
	good, bad := service("a", "good", `["location"]`), service("a", "bad", "location")
	for _, svc := range []*corev1.Service{good, bad} {
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = corev1.ClusterIPNone, []string{corev1.ClusterIPNone}
	}
	for _, test := range []struct {
		localDNS []netip.Addr
		cluster  bool
		want     string
	}{
		{nil, false, "GP0101 a/bad, GP0102 a/good"},
		{[]netip.Addr{netip.MustParseAddr("169.254.20.12")}, false, "GP0101 a/bad"},
		{nil, true, "GP0101 a/bad"},
	} {
		var found []string
		for _, f := range Analyze(snapshot(good, bad), Config{Rules: rules.Config{LocalDNS: test.localDNS}, Cluster: test.cluster}).Findings {
			found = append(found, f.Code+" "+f.Object.path())
		}
		if got := strings.Join(found, ", "); got != test.want {
			t.Errorf("with grid-dns at %v, of a cluster %t: %s, want %s", test.localDNS, test.cluster, got, test.want)
		}
	}
}

// TestSharedOut: many findings in one namespace do not hide those in another.
func TestSharedOut(t *testing.T) {
	var all []*corev1.Service
	for i := range 30 {
		all = append(all, service("a", fmt.Sprintf("web-%02d", i), "location"))
	}
	s := snapshot(append(all, service("z", "web", "location"))...)
	r := Analyze(s, Config{})
	if got := pathsOf(r, malformed); len(got) != MaxPerCode || got[0] != "a/web-00" || got[MaxPerCode-1] != "z/web" || !slices.IsSorted(got) {
		t.Errorf("findings about %v", got)
	}
	if r.LeftOut[0] != (LeftOut{malformed, 31 - MaxPerCode}) {
		t.Errorf("left out: %v", r.LeftOut)
	}
	if text := textOf(t, r); !strings.Contains(text, "\n11 more findings GP0101 are left out: --namespace shows those of one namespace\n") {
		t.Errorf("report:\n%s", text)
	}
	if r := Analyze(s, Config{Namespace: "z"}); r.Services != 1 || len(r.LeftOut) > 0 || r.Findings[0].Object.path() != "z/web" {
		t.Errorf("in namespace z:\n%s", textOf(t, r))
	}
}

// TestNamespaceOfGrids: --namespace counts for Grids, and a namespace with Grids alone exists.
func TestNamespaceOfGrids(t *testing.T) {
	grid := func(namespace string) gridspec.Grid {
		return gridspec.Grid{Namespace: namespace, Name: "web", Spec: gridspec.Spec{Kind: gridspec.DeploymentGrid, Key: "locaton"}}
	}
	deleting := grid("b")
	deleting.Idle = true
	s, c := snapshot(service("a", "web", "[]")), Config{Grids: []gridspec.Grid{grid("b"), grid("c"), deleting}, Namespace: "b"}
	if r := Analyze(s, c); r.Grids != 1 || r.Errors != 2 || r.Findings[0].Object.path() != "b/web" {
		t.Errorf("findings:\n%s", textOf(t, r))
	}
	for namespace, known := range map[string]bool{"": true, "a": true, "b": true, "d": false} {
		c.Namespace = namespace
		if err := c.CheckNamespace(s); (err == nil) != known {
			t.Errorf("namespace %q: %v", namespace, err)
		}
	}
}

// TestOneClusterIP: an API server gives each cluster IP once, unless it lost its storage. Manifests
// with such a pair cannot be read at all.
func TestOneClusterIP(t *testing.T) {
	r := Analyze(snapshot(service("a", "web", "[]"), service("b", "web", "[]")), Config{})
	if r.Errors != 1 || r.Findings[0].Code != addressTaken || r.Findings[0].Object.path() != "b/web" || !strings.Contains(r.Findings[0].Problem, "clusterIP 172.16.0.1:80/TCP") {
		t.Errorf("findings:\n%s", textOf(t, r))
	}
}

// TestNodesWithoutUnit: what the operator chose for such Nodes is no mistake of theirs.
func TestNodesWithoutUnit(t *testing.T) {
	s := snapshot(service("a", "web", `["location"]`), service("a", "typo", `["locaton"]`))
	s.Nodes["hub"] = labels.Set{}
	for choice, effect := range map[topology.NodesWithoutUnit]string{
		topology.WithoutUnitClosed: "clients on all Nodes are refused", topology.WithoutUnitLocal: "each Node uses its own endpoints only", topology.WithoutUnitOpen: "each Node uses all endpoints",
	} {
		text := textOf(t, Analyze(s, Config{Topology: topology.Config{NodesWithoutUnit: choice}}))
		if strings.Contains(text, nodeWithoutKeys) != (choice == topology.WithoutUnitClosed) || !strings.Contains(text, effect) {
			t.Errorf("with %s:\n%s", choice, text)
		}
	}
}

// TestTenantText: what users wrote is printed in lines of bounded length, without control
// characters.
func TestTenantText(t *testing.T) {
	s := snapshot(service("a", "good", `["location"]`), service("a", "near", `["locatio"]`), service("a", "web", "\x1b[31m\n"+strings.Repeat("x", 9000)))
	s.Nodes["bj-1"]["locati\x07o"] = "\u202eother\n"
	s.Slices = []*topology.Slice{slice("s", "good", endpoint("\x1b[31m\n"+strings.Repeat("y", 9000), true))}
	key := func(name string) string { return strings.Repeat(strings.Repeat("k", 61)+".", 4) + "org/" + name }
	s.Services = append(s.Services, service("a", "wordy", fmt.Sprintf("[%q,%q,%q]", key("a"), key("b"), key("c"))))
	s.Nodes["bj-1"][key("a")] = "beijing"
	wordy := slice("t", "wordy")
	for _, letter := range []string{"x", "y", "z"} {
		node := strings.Repeat(letter, 200)
		s.Nodes[node] = labels.Set{}
		wordy.Endpoints = append(wordy.Endpoints, endpoint(node, true))
	}
	s.Slices = append(s.Slices, wordy)
	grids := []gridspec.Grid{
		{Namespace: "a", Name: "\x1b[31m", Spec: gridspec.Spec{Kind: gridspec.DeploymentGrid, Key: "\n" + strings.Repeat("k", 9000), Default: "\u202e" + strings.Repeat("t", 9000)}},
		{Namespace: "a", Name: "near", Spec: gridspec.Spec{Kind: gridspec.ServiceGrid, Key: "location", Template: []byte("\x1b")}},
	}
	text := textOf(t, Analyze(s, Config{Grids: grids}))
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if excerpt.Line(line) != line || utf8.RuneCountInString(line) > excerpt.MaxLineChars+100 {
			t.Errorf("a line with %d bytes: %q", len(line), line)
		}
	}
	for _, want := range []string{gridWithoutKey, missingTemplate, invalidTemplate, malformed, onUnknownNode, onNodeWithoutUnit, `locati\ao`, `\x1b[31m\nyyy`} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in:\n%s", want, text)
		}
	}
}

// TestAnyEndpoint: a list of keys that ends in * refuses no client.
func TestAnyEndpoint(t *testing.T) {
	for keys, want := range map[string]string{`["*"]`: "", `["location","*"]`: "", `["rack","*"]`: keyNotCarried, `["rack"]`: noKeyCarried} {
		svc := service("a", "web", keys)
		svc.Annotations[topology.AnnotationPolicy] = string(topology.PolicyOrdered)
		s := snapshot(svc)
		s.Nodes["hub"] = labels.Set{}
		s.Slices = []*topology.Slice{slice("s", "web", endpoint("hub", true))}
		if r := Analyze(s, Config{}); len(r.Findings) != len(want)/len(malformed) || want != "" && r.Findings[0].Code != want {
			t.Errorf("with %s:\n%swant %q", keys, textOf(t, r), want)
		}
	}
}

// TestPortWithoutEndpoints: all units are refused, but by one of two ports only.
func TestPortWithoutEndpoints(t *testing.T) {
	svc := service("a", "web", `["location"]`)
	svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: "admin", Port: 81, Protocol: "TCP"})
	s := snapshot(svc)
	s.Slices = []*topology.Slice{slice("s", "web", endpoint("bj-1", true))}
	if text := textOf(t, Analyze(s, Config{})); !strings.Contains(text, "GP0301 Service a/web: clients in 1 of 1 units are refused, because no endpoint is usable there: location=beijing (port admin 81/TCP)\n") {
		t.Errorf("report:\n%s", text)
	}
}

// TestSliceOrder: an endpoint that two EndpointSlices list is decided by their names, not by their
// order in the source.
func TestSliceOrder(t *testing.T) {
	s := snapshot(service("a", "web", `["location"]`))
	var all []*topology.Slice
	for i, ready := range []bool{false, true} {
		all = append(all, slice(fmt.Sprint(i), "web", endpoint("bj-1", ready)))
	}
	s.Slices = all
	want := Analyze(s, Config{})
	s.Slices = []*topology.Slice{all[1], all[0]}
	if diff := cmp.Diff(want, Analyze(s, Config{})); diff != "" || len(want.Findings) != 0 {
		t.Errorf("findings:\n%sin another order (-want +got):\n%s", textOf(t, want), diff)
	}
}

// TestUnitsLeftOut: a Service with a key that has another value on each of many Nodes is not looked
// at completely, and the report says so.
func TestUnitsLeftOut(t *testing.T) {
	s := snapshot(service("a", "web", `["name"]`))
	for i := range 1100 {
		s.Nodes[fmt.Sprint(i)] = labels.Set{"name": fmt.Sprint(i)}
	}
	if text := textOf(t, Analyze(s, Config{})); !strings.Contains(text, "\n101 units are left out of GP0301 and GP0302 for some Services") {
		t.Errorf("report:\n%s", text)
	}
}

// TestServicesLeftOut: Services whose keys have many values do not use up the work for others.
func TestServicesLeftOut(t *testing.T) {
	s := snapshot(service("a", "many", `["name"]`), service("a", "more", `["name"]`), service("z", "few", `["location"]`))
	for i := range 100 {
		s.Nodes[fmt.Sprint(i)] = labels.Set{"name": fmt.Sprint(i)}
	}
	for decisions, want := range map[int]string{ // those with a finding
		2 + 101 + 101: "a/many a/more z/few", 2 + 101: "a/many z/few", 2 + 100: "z/few",
	} {
		r := Analyze(s, Config{MaxDecisions: decisions})
		found := pathsOf(r, refusedEverywhere)
		left := 3 - len(found)
		saysSo := strings.Contains(textOf(t, r), " left out of GP0301 and GP0302, because the keys have many values")
		if got := strings.Join(found, " "); got != want || r.ServicesLeftOut != left || saysSo != (left > 0) {
			t.Errorf("%d decisions: findings about %s, want %s:\n%s", decisions, got, want, textOf(t, r))
		}
	}
}

// TestSARIF: what is written is valid by the schema of SARIF 2.1.0.
func TestSARIF(t *testing.T) {
	var many []*corev1.Service
	for i := range 30 {
		many = append(many, service("a", fmt.Sprint(i), "location"))
	}
	for name, s := range map[string]topology.Snapshot{"nothing": snapshot(), "many": snapshot(many...)} {
		var b bytes.Buffer
		r := Analyze(s, Config{})
		if err := r.WriteSARIF(&b, "v1"); err != nil {
			t.Fatal(err)
		}
		log, err := sarif.FromBytes(b.Bytes(), sarif.WithStrictValidation())
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		run := log.Runs[0]
		if len(run.Results) != len(r.Findings) || len(run.Tool.Driver.Rules) != len(Codes()) || len(run.Invocations[0].ToolExecutionNotifications) != len(r.LeftOut) {
			t.Errorf("%s: %d results, want %d:\n%s", name, len(run.Results), len(r.Findings), b.String())
		}
	}
}

// TestFails: a finding fails what is at most as serious.
func TestFails(t *testing.T) {
	for _, test := range []struct {
		report Report
		want   string // the values of --fail-on that fail
	}{
		{Report{}, ""}, {Report{Notes: 1}, "note"}, {Report{Warnings: 1}, "warning note"}, {Report{Errors: 1}, "error warning note"},
	} {
		var got []string
		for _, s := range Severities() {
			if test.report.Fails(s) {
				got = append(got, string(s))
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%+v fails %v, want %s", test.report, got, test.want)
		}
	}
}

// TestPage: docs/findings.md has a section for each code, in the order of the table, with the
// example of testdata.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range Codes() {
		want = append(want, fmt.Sprintf("## %s: %s (%s)", c.ID, c.Title, c.Severity))
	}
	sections := regexp.MustCompile(`(?m)^## GP.*$`)
	got := sections.FindAllString(string(page), -1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
	if t.Failed() {
		return
	}
	for i, section := range sections.Split(string(page), -1)[1:] {
		id := Codes()[i].ID
		archive, err := txtar.ParseFile(filepath.Join("testdata", id+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		example := regexp.MustCompile(`(?m)^\w+ +` + id + ` .*$`).Find(txtarFile(archive, "findings.txt"))
		if !strings.Contains(section, "\n```\n"+string(example)+"\n```\n") || !strings.Contains(section, "\n**Remedy:** ") {
			t.Errorf("the section of %s lacks a remedy or this example from testdata: %s", id, example)
		}
	}
}

func txtarFile(archive *txtar.Archive, name string) []byte {
	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name })
	return archive.Files[i].Data
}
