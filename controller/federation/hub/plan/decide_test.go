package plan

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/archive"
	"gridproxy/controller/removal"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// west is a hub with one cluster. All steps are executed immediately.
type west struct {
	t *testing.T
	Observed
	cluster *Cluster
}

func newWest(t *testing.T, grids ...Grid) *west {
	now := time.Date(2026, 1, 1, 0, 0, 0, 123456789, time.UTC)
	o := newFleetCluster("west", "a")
	w := &west{t: t, Observed: Observed{Hub: hubUID, Now: now, Grids: grids, Grace: 5 * time.Minute, Budget: removal.Default(), Clusters: []Cluster{{
		Object: o, Namespace: true, Bundles: map[string]string{},
		Heartbeat: &Heartbeat{Heartbeat: v1alpha1.Heartbeat{ClusterUID: "member", Nodes: 28}, Renewal: "r1", Heard: now},
	}}}}
	w.cluster = &w.Clusters[0]
	return w
}

func distributed(namespace, name string) Grid {
	uid := namespace + "-" + name
	return Read(hubUID, gridState{ref: Ref{Kind: "DeploymentGrid", Namespace: namespace, Name: name, UID: uid}, fed: true}.object())
}

// decide decides and executes until nothing is to be written. It returns the last plan, and all
// bundles that were written.
func (w *west) decide() (Plan, map[string]Bundle) {
	w.t.Helper()
	written := map[string]Bundle{}
	for range 10 {
		p := Decide(w.Observed)
		c := p.Clusters[0]
		for i := range w.Grids {
			if slices.Contains(p.AddFinalizer, w.Grids[i].Ref) {
				w.Grids[i].Finalizer = true
			}
		}
		before, o := w.cluster.Object.Status, w.cluster.Object.DeepCopy()
		if c.AddFinalizer {
			o.Finalizers = []string{v1alpha1.Finalizer}
		}
		o.Status = c.Status
		w.cluster.Object = o
		for namespace, b := range c.Write {
			written[namespace], w.cluster.Bundles[namespace] = b, b.Revision
		}
		for _, namespace := range c.Remove {
			delete(w.cluster.Bundles, namespace)
		}
		if len(p.AddFinalizer)+len(c.Write)+len(c.Remove) == 0 && !c.AddFinalizer && reflect.DeepEqual(c.Status, before) {
			return p, written
		}
	}
	w.t.Fatal("there is always something to do")
	return Plan{}, nil
}

// report has the cluster report that it has all Grids of its status.
func (w *west) report() {
	w.cluster.Reports = nil
	for _, row := range w.cluster.Object.Status.Grids {
		w.cluster.Reports = append(w.cluster.Reports, Report{
			Object: row.UID, From: hubUID + "/" + row.UID, Revision: row.Revision, Kind: row.Kind, Namespace: row.Namespace, Name: row.Name,
			Observed: true, Units: []string{"a", "b"},
		})
	}
}

func (w *west) status() v1alpha1.FleetClusterStatus {
	p, _ := w.decide()
	return p.Clusters[0].Status
}

func (w *west) wantCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	w.t.Helper()
	c := meta.FindStatusCondition(w.status().Conditions, kind)
	if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message) {
		w.t.Errorf("condition %s is %+v, want %s, %s, %q", kind, c, status, reason, message)
	}
}

func TestDistribute(t *testing.T) {
	w := newWest(t, distributed("shop", "pos"), distributed("kube-edge", "dns"))
	w.cluster.Object.Spec.CreateNamespace = true
	if s := w.status(); s.State != "Waiting" || s.GridSummary != "0/2, 2 waiting" || s.ClusterUID != "member" || s.Nodes != 28 {
		t.Errorf("before it reports the status is %+v", s)
	}
	w.report()
	if s := w.status(); s.State != "Current" || s.GridSummary != "2/2 current" || s.Units != 2 {
		t.Errorf("the status is %+v", s)
	}
	w.wantCondition("Current", metav1.ConditionTrue, "Current", "all 2 Grids")
	w.cluster.Reports[1].Revision = "older"
	w.wantCondition("Current", metav1.ConditionFalse, "Behind", "1/2, 1 behind: DeploymentGrid shop/pos: Behind")
	w.cluster.Reports[1].Problem = &v1alpha1.Problem{Reason: "NameCollision", Message: "remove\x00 the other"}
	w.wantCondition("Current", metav1.ConditionFalse, "Behind", `1/2, 1 failed: DeploymentGrid shop/pos: NameCollision: remove\x00 the other`)
	w.cluster.Reports[1].Unread = "it has 300000 bytes"
	w.wantCondition("Current", metav1.ConditionFalse, "Behind", "UnreadableReport: it has 300000 bytes")
}

// TestRemoveReported: what a cluster reports and the status does not list goes with a FleetCluster
// that is removed.
func TestRemoveReported(t *testing.T) {
	w := newWest(t, distributed("shop", "pos"))
	w.decide()
	w.report()
	w.cluster.Object.Status.Grids, w.cluster.Bundles = nil, map[string]string{}
	w.cluster.Object.Spec.OnDelete, w.cluster.Object.DeletionTimestamp = v1alpha1.Remove, &metav1.Time{Time: w.Now}
	if s := w.status(); !slices.Contains(s.Withdrawn, "shop-pos") {
		t.Errorf("withdrawn are %v", s.Withdrawn)
	}
}

// TestDetaching: a FleetCluster that is deleted is looked at again until Flux has dropped it.
func TestDetaching(t *testing.T) {
	w := newWest(t, distributed("shop", "pos"))
	w.decide()
	w.cluster.Object.Spec.Pull, w.cluster.Object.DeletionTimestamp = false, &metav1.Time{Time: w.Now}
	if p := Decide(w.Observed); p.Recheck != detachPollPeriod || p.Clusters[0].RemoveFinalizer {
		t.Errorf("it is decided again after %s: %+v", p.Recheck, p.Clusters[0])
	}
	w.cluster.Detached = true
	if p := Decide(w.Observed); p.Recheck == detachPollPeriod || !p.Clusters[0].RemoveFinalizer {
		t.Errorf("then it is decided again after %s: %+v", p.Recheck, p.Clusters[0])
	}
}

// TestArrive: a Grid and its FleetCluster get their finalizers before anything else, and the Grid
// is listed before it is sent.
func TestArrive(t *testing.T) {
	w := newWest(t, distributed("shop", "pos"))
	w.cluster.Object.Finalizers = nil
	p := Decide(w.Observed)
	if c := p.Clusters[0]; !c.AddFinalizer || len(c.Write)+len(c.Status.Grids)+len(p.AddFinalizer) > 0 {
		t.Errorf("before the FleetCluster has its finalizer it is decided %+v", p)
	}
	w.cluster.Object.Finalizers = []string{v1alpha1.Finalizer}
	p = Decide(w.Observed)
	if c := p.Clusters[0]; len(p.AddFinalizer) != 1 || len(c.Write)+len(c.Status.Grids) > 0 {
		t.Errorf("before the Grid has its finalizer it is decided %+v", p)
	}
	w.Grids[0].Finalizer = true
	p = Decide(w.Observed)
	if c := p.Clusters[0]; len(p.AddFinalizer)+len(c.Write) > 0 || len(c.Status.Grids) != 1 {
		t.Errorf("before the Grid is listed it is decided %+v", p)
	}
	w.cluster.Object.Status = p.Clusters[0].Status
	if p = Decide(w.Observed); len(p.Clusters[0].Write) != 1 {
		t.Errorf("at last it is decided %+v", p)
	}
}

// TestLeave: a Grid keeps its finalizer until what is observed says that it is withdrawn.
func TestLeave(t *testing.T) {
	w := newWest(t, distributed("shop", "pos"))
	w.decide()
	w.report()
	w.Grids[0].Deleting = true
	p := Decide(w.Observed)
	if c := p.Clusters[0]; len(p.RemoveFinalizer) > 0 || len(c.Remove) != 1 || len(c.Status.Grids) > 0 || !slices.Equal(c.Status.Withdrawn, []string{"shop-pos"}) {
		t.Errorf("first it is decided %+v", p)
	}
	if p, _ = w.decide(); len(p.RemoveFinalizer) != 1 {
		t.Errorf("then it is decided %+v", p)
	}
	w.wantCondition("Current", metav1.ConditionTrue, "Current", "withdrawn, and still reported by the cluster: DeploymentGrid shop/pos")
	w.cluster.Reports[0].Problem = &v1alpha1.Problem{Reason: "NotPruned", Message: "remove an annotation"}
	w.wantCondition("Current", metav1.ConditionTrue, "Current", "still reported by the cluster: DeploymentGrid shop/pos: remove an annotation")
	w.cluster.Reports = nil
	if c := meta.FindStatusCondition(w.status().Conditions, "Current"); strings.Contains(c.Message, "withdrawn") {
		t.Errorf("when it is gone: %q", c.Message)
	}
}

// TestNamespaces: a Namespace comes first, and none is created that belongs to Kubernetes.
func TestNamespaces(t *testing.T) {
	w := newWest(t, distributed("shop", "pos"), distributed("kube-edge", "dns"))
	w.cluster.Object.Spec.CreateNamespace = true
	_, written := w.decide()
	if b := written["kube-edge"]; len(b.Objects) != 1 || b.Grids != 1 {
		t.Errorf("in namespace kube-edge there are %d objects", len(b.Objects))
	}
	b := written["shop"]
	if len(b.Objects) != 2 || b.Grids != 1 {
		t.Fatalf("in namespace shop there are %d objects", len(b.Objects))
	}
	if !bytes.Equal(b.Objects[0], archive.Namespace("shop", nil)) {
		t.Errorf("the Namespace is %s", b.Objects[0])
	}
}

// TestSelectorsAreReadOnce: a selector is compared once with the same labels, however many Grids
// and clusters have them, and never taken for another one.
func TestSelectorsAreReadOnce(t *testing.T) {
	o := Observed{Hub: hubUID, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	asked := 0
	for i := range 40 {
		g := Read(hubUID, gridState{
			ref: Ref{Kind: "DeploymentGrid", Namespace: "shop", Name: fmt.Sprint(i), UID: fmt.Sprint(i)},
			fed: true, finalizer: true, selector: "region=" + string("ab"[i%2]),
		}.object())
		selects := g.Content.Selects
		g.Content.Selects = func(of map[string]string) bool { asked++; return selects(of) }
		g.Finalizer = true
		o.Grids = append(o.Grids, g)
	}
	for i := range 30 {
		c := newFleetCluster(fmt.Sprint(i), string("abc"[i%3]))
		c.Finalizers = []string{v1alpha1.Finalizer}
		o.Clusters = append(o.Clusters, Cluster{Object: c, Namespace: true})
	}
	for _, c := range Decide(o).Clusters {
		for _, row := range c.Status.Grids {
			i := slices.IndexFunc(o.Clusters, func(o Cluster) bool { return o.Object.Name == c.Name })
			if n := len(c.Status.Grids); n != 20 || "ab"[row.Name[len(row.Name)-1]%2] != "abc"[i%3] {
				t.Errorf("cluster %s gets %d Grids, Grid %s among them", c.Name, n, row.Name)
			}
		}
	}
	if asked != 6 {
		t.Errorf("2 selectors are compared %d times with 3 sets of labels", asked)
	}
}

// TestTell: a status that differs only in numbers and messages waits; any other is written at once.
func TestTell(t *testing.T) {
	w := newWest(t, distributed("shop", "pos"))
	w.decide()
	w.report()
	w.decide()
	w.cluster.Told = w.Now
	w.cluster.Heartbeat.Nodes = 29
	p, _ := w.decide()
	if s := p.Clusters[0].Status; s.Nodes != 28 || p.Recheck != StatusPeriod {
		t.Errorf("at once %d Nodes are told, then again after %s", s.Nodes, p.Recheck)
	}
	w.cluster.Reports[0].Revision = "older"
	if s := w.status(); s.Nodes != 29 || s.State != "Behind" {
		t.Errorf("with a change the status is %+v", s)
	}
	w.cluster.Heartbeat.Nodes = 30
	w.Now = w.Now.Add(StatusPeriod)
	if s := w.status(); s.Nodes != 30 {
		t.Errorf("later %d Nodes are told", s.Nodes)
	}
}

func TestSilence(t *testing.T) {
	w := newWest(t, distributed("shop", "pos"))
	w.decide()
	w.report()
	p, _ := w.decide()
	if p.Recheck != heartbeatTimeout {
		t.Errorf("it is decided again after %s", p.Recheck)
	}
	heard := w.Now
	w.Now = heard.Add(heartbeatTimeout - time.Second)
	if p, _ = w.decide(); p.Clusters[0].Status.State != "Current" || p.Recheck != time.Second {
		t.Errorf("after 89 s it is %s, rechecked after %s", p.Clusters[0].Status.State, p.Recheck)
	}
	w.Now = heard.Add(heartbeatTimeout)
	w.wantCondition("Stale", metav1.ConditionTrue, "Silent", heard.Format(time.RFC3339))
	w.wantCondition("Reachable", metav1.ConditionFalse, "Silent", heard.Format(time.RFC3339))
	w.wantCondition("Current", metav1.ConditionUnknown, "Silent", "1/1 current")
	silent := w.status()
	if silent.State != "Stale" || !silent.SilentSince.Time.Equal(heard.Truncate(time.Second)) || silent.LastRenewal != "r1" ||
		len(silent.Grids) != 1 || silent.Nodes != 28 {
		t.Errorf("the status of a silent cluster is %+v", silent)
	}
	// Another process of the hub sees the same Lease for the first time.
	w.Now = heard.Add(time.Hour)
	w.cluster.Heartbeat.Heard = w.Now
	if s := w.status(); s.State != "Stale" || !s.SilentSince.Equal(silent.SilentSince) {
		t.Errorf("after a restart of the hub the status is %+v", s)
	}
	w.cluster.Heartbeat = &Heartbeat{Heartbeat: w.cluster.Heartbeat.Heartbeat, Renewal: "r2", Heard: w.Now}
	if s := w.status(); s.State != "Current" || s.SilentSince != nil || s.LastRenewal != "" {
		t.Errorf("after another heartbeat the status is %+v", s)
	}
	w.cluster.Heartbeat = nil
	if s := w.status(); s.State != "Stale" || s.SilentSince == nil {
		t.Errorf("without a Lease the status is %+v", s)
	}
}

func TestNeverHeard(t *testing.T) {
	w := newWest(t)
	w.cluster.Heartbeat = nil
	if s := w.status(); s.State != "Waiting" {
		t.Errorf("the state is %s", s.State)
	}
	w.wantCondition("Reachable", metav1.ConditionUnknown, "Waiting", "grid-controller join --cluster west")
	w.cluster.Namespace = false
	w.wantCondition("Current", metav1.ConditionFalse, "NamespaceMissing", "grid-controller join --cluster west")
}

// TestHubUnknown: without the UID of the hub no report can be told from those of another hub.
func TestHubUnknown(t *testing.T) {
	w := newWest(t, distributed("shop", "pos"))
	w.decide()
	w.report()
	w.Grids, w.Hub = nil, ""
	if p, _ := w.decide(); len(w.cluster.Bundles) != 1 || len(p.Clusters[0].Status.Grids) != 1 {
		t.Errorf("it is decided %+v", p)
	}
}

func TestProblems(t *testing.T) {
	w := newWest(t)
	w.cluster.Heartbeat.Problems = []v1alpha1.Problem{
		{Reason: "EngineMissing", Message: "run kubectl apply -k flux"}, {Reason: "Token\nExpired", Message: "join\nagain"},
		{Reason: "EngineMissing", Message: "which is said again"},
	}
	w.wantCondition("EngineMissing", metav1.ConditionTrue, "EngineMissing", "run kubectl apply -k flux")
	w.wantCondition("Current", metav1.ConditionFalse, "EngineMissing", `Unknown: join\nagain`)
	if s := w.status(); s.State != "NoEngine" {
		t.Errorf("the state is %s", s.State)
	}
	w.cluster.Heartbeat.Problems = []v1alpha1.Problem{{Reason: "Unreachable", Message: "check the kubeconfig"}}
	w.wantCondition("Reachable", metav1.ConditionFalse, "Unreachable", "check the kubeconfig")
}

// TestWhyItIsSilent: the status says why a cluster does not report, whether it reported before or
// not, and keeps what it said before.
func TestWhyItIsSilent(t *testing.T) {
	problems := v1alpha1.Heartbeat{Problems: []v1alpha1.Problem{{Reason: "KubeConfigInvalid", Message: "the Secret has no key value"}}}
	w := newWest(t)
	w.cluster.Heartbeat = &Heartbeat{Heartbeat: problems, Heard: w.Now}
	if s := w.status(); s.State != "Unreachable" || s.ClusterUID != "" {
		t.Errorf("the status is %+v", s)
	}
	w.wantCondition("Reachable", metav1.ConditionFalse, "KubeConfigInvalid", "the Secret has no key value")
	w.wantCondition("Current", metav1.ConditionFalse, "KubeConfigInvalid", "the Secret has no key value")
	w.wantCondition("Stale", metav1.ConditionFalse, "Waiting", "the cluster has not been heard yet")

	w = newWest(t, distributed("shop", "pos"))
	w.decide()
	w.report()
	w.decide()
	w.cluster.Heartbeat.Heartbeat = problems
	if s := w.status(); s.State != "Unreachable" || s.Nodes != 28 {
		t.Errorf("soon the status is %+v", s)
	}
	w.Now = w.Now.Add(heartbeatTimeout)
	if s := w.status(); s.State != "Stale" || s.Nodes != 28 {
		t.Errorf("later the status is %+v", s)
	}
	w.wantCondition("Reachable", metav1.ConditionFalse, "KubeConfigInvalid", "the Secret has no key value; the cluster was last heard at")
	w.wantCondition("Current", metav1.ConditionUnknown, "Silent", "KubeConfigInvalid: the Secret has no key value")
}

func TestReplaced(t *testing.T) {
	w := newWest(t, distributed("shop", "pos"))
	w.decide()
	w.report()
	w.cluster.Heartbeat.ClusterUID = "another"
	w.Grids = append(w.Grids, distributed("shop", "web"))
	p, written := w.decide()
	if s := p.Clusters[0].Status; len(written) > 0 || s.State != "Replaced" || s.ClusterUID != "member" || len(s.Grids) != 1 {
		t.Errorf("to another cluster %d bundles are sent; its status is %+v", len(written), s)
	}
	w.wantCondition("ClusterReplaced", metav1.ConditionTrue, "OtherUID", "has UID another")
	w.wantCondition("ClusterReplaced", metav1.ConditionTrue, "OtherUID", "run: grid-controller join --cluster west")
	w.cluster.Object.Spec = v1alpha1.FleetClusterSpec{KubeConfig: &v1alpha1.KubeConfig{}}
	w.wantCondition("ClusterReplaced", metav1.ConditionTrue, "OtherUID", "run: grid-controller join --cluster west --member-kubeconfig FILE")
	w.cluster.Heartbeat = nil
	w.wantCondition("ClusterReplaced", metav1.ConditionTrue, "OtherUID", "another")
}

// TestHeld: what a member says is safe to copy into a shell.
func TestHeld(t *testing.T) {
	w := newWest(t)
	for i := range 5 {
		w.cluster.Reports = append(w.cluster.Reports, Report{
			Object: fmt.Sprint(i), From: fmt.Sprintf("%s/lost-%d", hubUID, i), Kind: "DeploymentGrid", Namespace: "shop", Name: "a\nb",
		})
	}
	w.cluster.Reports = append(w.cluster.Reports, Report{Object: "x", From: hubUID + "/$(reboot)"}, Report{Object: "y", From: "other/lost-9"})
	w.wantCondition("DistributionHeld", metav1.ConditionTrue, "UnknownGrids", strings.Repeat(`DeploymentGrid shop/a\nb, `, 2)+
		`DeploymentGrid shop/a\nb and 2 more; if they may be removed there, run: `+
		"kubectl annotate fleetcluster west --overwrite superedge.io/release-distribution=lost-0,lost-1,lost-2,lost-3,lost-4")
	if s := w.status(); s.State != "Held" {
		t.Errorf("the state is %s", s.State)
	}
	w.cluster.Object.Annotations = map[string]string{v1alpha1.AnnotationRelease: "lost-0, lost-1,lost-2,lost-3"}
	w.wantCondition("DistributionHeld", metav1.ConditionTrue, "UnknownGrids", "=lost-4")
	w.cluster.Object.Annotations = map[string]string{v1alpha1.AnnotationRelease: "lost-4"}
	if s := w.status(); s.State != "Current" || len(s.Withdrawn) != 5 {
		t.Errorf("after all are released the status is %+v", s)
	}
}
