package expand

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
)

const servicePorts = `{"selector": {"appGrid": "echo"}, "ports": [{"name": "http", "port": 80}, {"name": "metrics", "port": 81}]}`

// newServices is a ServiceGrid "web". Nodes do not concern it.
func newServices(t *testing.T) *cluster {
	c := newCluster(t)
	c.grid.Kind, c.grid.Template = ServiceGrid, []byte(servicePorts)
	return c
}

func (c *cluster) serviceCondition(of string) string {
	c.status = v1.WorkloadGridStatus{GridStatus: ServiceStatus(c.observe([]string{"web-svc"})).GridStatus}
	return c.condition(of)
}

func TestServiceGrid(t *testing.T) {
	c := newServices(t)
	check(t, "Ready before", c.serviceCondition(v1.ConditionReady), "False Creating")
	c.expect("apply web-svc")
	service := c.objects["web-svc"]
	service.ClusterIP, service.State = "10.96.0.7", []byte(`{"ingress":[{"ip":"192.0.2.1"}]}`)
	s := ServiceStatus(c.observe(nil))
	check(t, "status", s.Service+" "+s.ClusterIP+" "+string(s.LoadBalancer.JSON), `web-svc 10.96.0.7 {"ingress":[{"ip":"192.0.2.1"}]}`)
	check(t, "Ready", c.serviceCondition(v1.ConditionReady), "True ServiceReady")
	check(t, "observedGeneration", s.ObservedGeneration, 1)
	service.State = []byte(`{}`)
	check(t, "loadBalancer", ServiceStatus(c.observe(nil)).LoadBalancer, "<nil>")
}

// TestB23Drift: topologyKeys that is removed from the Service comes back, as does a label; with
// SuperEdge closure was gone without a word.
func TestB23Drift(t *testing.T) {
	c := newServices(t)
	c.expect("apply web-svc")
	for _, path := range [][]string{
		{"metadata", "annotations", v1.AnnotationTopologyKeys}, {"metadata", "labels", v1.LabelKey}, {"spec", "ports"},
	} {
		c.seize("web-svc", path...)
		c.expect("apply web-svc")
	}
	check(t, "topologyKeys", c.objects["web-svc"].Annotations.Get(v1.AnnotationTopologyKeys), `["zone"]`)
}

// TestB23RemovedPort: a port, the type or a selector key that leaves the template is another wish,
// and the apply does not have it.
func TestB23RemovedPort(t *testing.T) {
	c := newServices(t)
	c.expect("apply web-svc")
	c.grid.Template = []byte(`{"ports": [{"name": "http", "port": 80}]}`)
	apply := Decide(c.observe(nil)).Steps[0].(Apply)
	check(t, "spec", apply.Child.Object.Object["spec"], map[string]any{"ports": []any{map[string]any{"name": "http", "port": int64(80)}}})
	c.expect("apply web-svc")
}

// TestB24ServiceFinalizer: what the cloud put on a Service is not in what we apply, so that it
// stays, and the owner is.
func TestB24ServiceFinalizer(t *testing.T) {
	c := newServices(t)
	apply := Decide(c.observe([]string{"web-svc"})).Steps[0].(Apply)
	if o := apply.Child.Object; o.GetFinalizers() != nil || len(o.GetOwnerReferences()) != 1 {
		t.Errorf("finalizers %v, owners %v", o.GetFinalizers(), o.GetOwnerReferences())
	}
}

// TestB25ErrorIsCleared: a condition goes when its cause has gone, and SuperEdge's are dropped.
func TestB25ErrorIsCleared(t *testing.T) {
	c := newServices(t)
	c.refuse = func(Apply) *Problem { return &Problem{ReasonRefused, "spec.ports: required"} }
	c.status.Conditions = append(c.status.Conditions, condition("CreateError", start()))
	c.expect("refused web-svc")
	check(t, "Degraded", c.serviceCondition(v1.ConditionDegraded), "True Refused")
	check(t, "Ready", c.serviceCondition(v1.ConditionReady), "False Refused")
	c.refuse = nil
	c.grid.Template = []byte(`{"ports": [{"port": 80}]}`)
	c.expect("apply web-svc")
	check(t, "Degraded", c.serviceCondition(v1.ConditionDegraded), "False AsExpected")
	check(t, "CreateError", c.serviceCondition("CreateError"), "")
}

// TestServiceGridHasNoLosses: all Nodes may go, the Service stays; one of another name is released,
// not deleted.
func TestServiceGridHasNoLosses(t *testing.T) {
	c := newServices(t)
	c.grace = 0
	c.expect("apply web-svc")
	c.foreign(Live{Name: "web-old", Owner: "web-uid", Labels: MakePairs(ownLabels())})
	c.expect("release web-old")
	c.after(time.Hour)
	c.expect()
	check(t, "objects", c.names(), []string{"web-old", "web-svc"})
}

// TestServiceGridWithBadKey touches nothing.
func TestServiceGridWithBadKey(t *testing.T) {
	c := newServices(t)
	c.expect("apply web-svc")
	c.grid.Key = ""
	c.expect()
	check(t, "Ready", c.serviceCondition(v1.ConditionReady), "False Empty")
	c.grid.Key, c.grid.Template = "zone", nil
	c.expect()
	check(t, "Degraded", c.serviceCondition(v1.ConditionDegraded), "True MissingTemplate")
	if s := ServiceStatus(c.observe(nil)); s.Service != "web-svc" || slices.ContainsFunc(s.Conditions, isHeld) {
		t.Errorf("status %+v", s)
	}
}

// TestServiceStaysHeadless: the API server keeps a Service headless, without a word, when clusterIP
// leaves the template. So the status says it, and with the opt-in the Service is replaced.
func TestServiceStaysHeadless(t *testing.T) {
	c := newServices(t)
	c.grid.Template = []byte(strings.Replace(servicePorts, "{", `{"clusterIP": "None", `, 1))
	c.expect("apply web-svc")
	c.objects["web-svc"].ClusterIP = "None"
	c.expect()
	check(t, "Ready", c.serviceCondition(v1.ConditionReady), "True ServiceReady")

	c.grid.Template = []byte(servicePorts)
	c.expect()
	check(t, "Ready", c.serviceCondition(v1.ConditionReady), "False "+ReasonImmutableField)
	c.grid.Annotations[v1.AnnotationOnImmutableChange] = "Recreate"
	check(t, "steps", c.reconcile(), []string{"replace web-svc"})
	c.expect("apply web-svc")
	check(t, "Ready", c.serviceCondition(v1.ConditionReady), "True ServiceReady")
}

// TestServiceRekeyed: a Service keeps its topology key while no Node has the new one and some have
// the one before: it would be refused everywhere.
func TestServiceRekeyed(t *testing.T) {
	c := newServices(t)
	c.others = map[string]map[string][]string{"zone": {"a": {"n"}}}
	c.expect("apply web-svc")
	keys := func() string { return c.objects["web-svc"].Annotations.Get(v1.AnnotationTopologyKeys) }
	c.grid.Key = "example.com/zone"
	c.expect()
	check(t, "Rekeyed", c.serviceCondition(v1.ConditionRekeyed), "True KeyChanged")
	check(t, "looks again", c.recheck, time.Minute)
	c.others["example.com/zone"] = map[string][]string{"a": {"n"}}
	c.expect("apply web-svc")
	check(t, "topologyKeys", keys(), `["example.com/zone"]`)
	check(t, "Rekeyed", c.serviceCondition(v1.ConditionRekeyed), "")
	delete(c.others, "example.com/zone") // the key before cannot be written as a label
	c.grid.Key = "zone"
	c.others["example.com/zone"], c.others["zone"] = map[string][]string{"a": {"n"}}, nil
	c.expect()
	c.grid.Key = "other"
	delete(c.others, "example.com/zone") // no Node has any
	c.expect("apply web-svc")
}
