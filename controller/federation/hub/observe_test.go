package hub

import (
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
		clusters: []v1alpha1.FleetCluster{{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, {ObjectMeta: metav1.ObjectMeta{Name: "west"}}, {ObjectMeta: metav1.ObjectMeta{Name: "north"}}},
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
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(plan.Content{}, "Selects", "Releases"), cmpopts.IgnoreFields(plan.Observed{}, "Budget"), cmpopts.EquateEmpty()); diff != "" {
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
