package hub

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/hub/plan"

	v1 "gridproxy/controller/api/v1"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestObserve: what is in the namespace of a cluster is this cluster's, whatever its labels say,
// and what belongs to no cluster is left out.
func TestObserve(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	grid := newGrid("shop", "pos")
	deleting := metav1.Now()
	namespace := func(name string, at *metav1.Time, labels map[string]string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, DeletionTimestamp: at, Labels: labels}}
	}
	fleetCluster := func(name string) v1alpha1.FleetCluster {
		return v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	joined := map[string]string{v1alpha1.LabelCluster: "any"}
	bundle := func(namespace, name, label string) v1alpha1.GridBundle {
		return v1alpha1.GridBundle{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelCluster: label},
			Annotations: map[string]string{v1alpha1.AnnotationRevision: "r-" + name},
		}}
	}
	foreign := newLease("east", now, `{"nodes":7}`)
	foreign.Namespace = "fleet-west" // with the label of east
	other := newLease("west", now, `{"nodes":9}`)
	other.Name = "another"
	west, gone := newReport("west", grid), newReport("gone", grid)
	l := lists{
		grids:    []client.Object{grid},
		clusters: []v1alpha1.FleetCluster{fleetCluster("east"), fleetCluster("west"), fleetCluster("north")},
		bundles: []v1alpha1.GridBundle{bundle("fleet-west", "shop", "west"), bundle("fleet-west", "apply-shop", ""), bundle("fleet-gone", "shop", "west"),
			bundle("west", "shop", "west")},
		reports: []v1alpha1.GridReport{*west, *gone},
		leases:  []coordinationv1.Lease{*foreign, *other},
		// Who may make namespaces may have made that of north.
		namespaces: []metav1.PartialObjectMetadata{
			namespace("fleet-east", &deleting, joined), namespace("fleet-west", nil, joined), namespace("west", nil, joined), namespace("fleet-north", nil, nil),
		},
	}
	got := (&memory{}).observe(l, "hub", now)
	want := plan.Observed{Hub: "hub", Now: now, Grids: []plan.Grid{plan.Read("hub", untyped(grid))}, Clusters: []plan.Cluster{
		{Object: &l.clusters[0], Bundles: map[string]string{}},
		{
			Object: &l.clusters[1], Namespace: true, Bundles: map[string]string{"shop": "r-shop"},
			Reports:   []plan.Report{{Object: "report-pos", From: "hub/pos", Kind: "DeploymentGrid", Namespace: "shop", Name: "pos"}},
			Heartbeat: &plan.Heartbeat{Heartbeat: v1alpha1.Heartbeat{Nodes: 7}, Renewal: "2026-01-01T00:00:00.000000Z", Heard: now},
		},
		{Object: &l.clusters[2], Bundles: map[string]string{}},
	}}
	ignored := cmp.Options{cmpopts.IgnoreFields(plan.Content{}, "Selects", "Releases"), cmpopts.IgnoreFields(plan.Observed{}, "Budget")}
	if diff := cmp.Diff(want, got, ignored, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestMemo: a version is read once, another one again, and what is gone is forgotten.
func TestMemo(t *testing.T) {
	var m memo[string]
	for _, step := range []struct{ version, read, want string }{
		{"1", "first", "first"},
		{"1", "not read", "first"},
		{"2", "second", "second"},
	} {
		m.begin()
		g := newGrid("shop", "pos")
		g.ResourceVersion = step.version
		if got := m.of(g, func() string { return step.read }); got != step.want {
			t.Errorf("version %s: got %s, want %s", step.version, got, step.want)
		}
	}
	m.begin()
	m.begin()
	if len(m.last)+len(m.now) > 0 {
		t.Errorf("what is gone is remembered: %v %v", m.last, m.now)
	}
}

// TestUnreadReport: a report of a later format, or one that is too large, is not read.
func TestUnreadReport(t *testing.T) {
	later, large, fits := newReport("west", newGrid("shop", "pos")), newReport("west", newGrid("shop", "pos")), newReport("west", newGrid("shop", "pos"))
	later.Spec.Format++
	for _, r := range []*v1alpha1.GridReport{later, large, fits} {
		r.Spec.Status.Units = []v1.UnitStatus{{Value: "a"}, {Value: "b"}}
	}
	large.Spec.Status.Units[0].Message = strings.Repeat("x", v1alpha1.MaxReport)
	trimmed := newReport("west", newGrid("shop", "pos"))
	trimmed.Annotations = map[string]string{v1alpha1.AnnotationReportBytes: "200001"}
	for r, want := range map[*v1alpha1.GridReport]string{later: "its format is 2", large: "more than 200000", trimmed: "it has 200001 bytes", fits: ""} {
		got := readReport(r)
		if !strings.Contains(got.Unread, want) || (got.Unread == "") != (want == "") || (len(got.Units) == 2) != (want == "") {
			t.Errorf("want %q, got %q with %d units", want, got.Unread, len(got.Units))
		}
	}
}

// TestTransforms: the cache keeps of objects what is read, and the second transform of an object
// changes nothing.
func TestTransforms(t *testing.T) {
	b := &v1alpha1.GridBundle{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet-west", Name: "shop", UID: "1", ResourceVersion: "2", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
			Labels: map[string]string{v1alpha1.LabelCluster: "west", "a": "b"}, Annotations: map[string]string{v1alpha1.AnnotationRevision: "r", "a": "b"},
		},
		Spec: v1alpha1.GridBundleSpec{Grids: 1, Digest: "d", Archive: make([]byte, 1000)},
	}
	wantBundle := &v1alpha1.GridBundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-west", Name: "shop", UID: "1", ResourceVersion: "2",
			Labels:      map[string]string{v1alpha1.LabelCluster: "west"},
			Annotations: map[string]string{v1alpha1.AnnotationRevision: "r", annotationSize: "1000"}},
		Spec: v1alpha1.GridBundleSpec{Grids: 1, Digest: "d"},
	}
	lease := newLease("west", time.Unix(1, 0), strings.Repeat("x", heartbeatMax+1))
	wantLease := newLease("west", time.Unix(1, 0), "")
	wantLease.Labels, wantLease.Annotations = nil, nil
	n := newNamespace()
	n.Name, n.Labels, n.Annotations = "fleet-west", map[string]string{v1alpha1.LabelCluster: "west"}, map[string]string{"a": "b"}
	wantNamespace := newNamespace()
	wantNamespace.Name, wantNamespace.Labels = "fleet-west", map[string]string{v1alpha1.LabelCluster: "west"}
	for range 2 {
		for _, test := range []struct {
			transform func(any) (any, error)
			o, want   any
		}{{trimBundle, b, wantBundle}, {trimLease, lease, wantLease}, {trimNamespace, n, wantNamespace}} {
			got, err := test.transform(test.o)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		}
	}
	if size := bundleBytes(b); size != 1000 {
		t.Errorf("%d bytes", size)
	}
}

// TestHeard: each change of a member's renewTime counts as a sign of life, at the time of the
// hub's clock. The member's clock plays no part.
func TestHeard(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h := heardLast{}
	for _, step := range []struct {
		renewed   time.Duration // by the member's clock
		heartbeat string
		now       time.Duration
		heard     time.Duration // negative: there is no heartbeat
	}{
		{0, `{}`, 0, 0},
		{0, `{"version":"1"}`, 50 * time.Second, 0},
		{time.Hour, `{}`, 60 * time.Second, 60 * time.Second},
		{time.Hour, `{}`, 100 * time.Second, 60 * time.Second},
		{-time.Hour, `{}`, 120 * time.Second, 120 * time.Second}, // its clock was set back
		{time.Minute, `{`, 130 * time.Second, -1},
		{time.Minute, strings.Repeat(" ", heartbeatMax) + `{}`, 140 * time.Second, -1},
	} {
		h = h.next(map[string]*coordinationv1.Lease{"west": newLease("west", begin.Add(step.renewed), step.heartbeat)}, begin.Add(step.now))
		beat, found := h["west"]
		if found != (step.heard >= 0) || found && (!beat.Heard.Equal(begin.Add(step.heard))) {
			t.Errorf("after %s: heard at %s, found: %t; want %s", step.now, beat.Heard, found, step.heard)
		}
	}
	if h = h.next(nil, begin); len(h) > 0 {
		t.Errorf("clusters that are gone are remembered: %v", h)
	}
}

// TestNeverRenewed: a Lease without a renewTime says what is wrong, or nothing.
func TestNeverRenewed(t *testing.T) {
	for text, want := range map[string]int{`{"problems": [{"reason": "KubeConfigInvalid"}]}`: 1, `{}`: 0} {
		l := newLease("west", time.Unix(1, 0), text)
		l.Spec.RenewTime = nil
		h := heardLast{}.next(map[string]*coordinationv1.Lease{"west": l}, time.Unix(2, 0))
		if len(h) != want || want > 0 && (h["west"].Renewal != "" || h["west"].Problems[0].Reason != "KubeConfigInvalid") {
			t.Errorf("of %s it is read %+v", text, h)
		}
	}
}

// TestHeartbeatBounds: however much a member says, what is kept of it has a bound.
func TestHeartbeatBounds(t *testing.T) {
	said := v1alpha1.Heartbeat{ClusterUID: strings.Repeat("u", 1000), Version: "1\n2"}
	for range 20 {
		said.Problems = append(said.Problems, v1alpha1.Problem{Reason: strings.Repeat("r", 200), Message: strings.Repeat("m", 500) + "\x1b[31m"})
	}
	text, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	kept, ok := readHeartbeat(newLease("west", time.Unix(1, 0), string(text)))
	if !ok || len(kept.Problems) != problemsMax || len(kept.ClusterUID) > wordMax || kept.Version != `1\n2` {
		t.Errorf("%t, %d problems, UID of %d bytes, version %q", ok, len(kept.Problems), len(kept.ClusterUID), kept.Version)
	}
	for _, p := range kept.Problems {
		if len(p.Reason) > wordMax || len(p.Message) > v1alpha1.MaxMessage || strings.Contains(p.Message, "\x1b") {
			t.Errorf("a problem of %d and %d bytes: %q", len(p.Reason), len(p.Message), p.Message)
		}
	}
}
