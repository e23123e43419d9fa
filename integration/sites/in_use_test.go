package sites

import (
	"fmt"
	"testing"
	"time"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// service makes a Service that is closed by label keys, a JSON list.
func (r *running) service(name, keys string) {
	r.t.Helper()
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"topologyKeys": keys}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if _, err := r.api.CoreV1().Services("default").Create(r.ctx, s, metav1.CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// groupInUse is a Node in unit u of group g, and a Service that names g.
func (r *running) groupInUse() {
	r.t.Helper()
	r.node("a")
	r.service("web", `["g"]`)
	r.create(nodeUnit("v1alpha2", "u", `{"nodes": ["a"]}`), nodeGroup("v1alpha2", "g", `{"nodeUnits": ["u"]}`))
	r.labels("a", inGroup)
}

func (r *running) create(objects ...string) {
	r.t.Helper()
	for _, o := range objects {
		r.kubectl(o, "create", "-f", "-")
	}
}

// records waits until a Node records these keys as kept.
func (r *running) records(node, keys string) {
	r.t.Helper()
	wait.Until(r.t, "what Node "+node+" keeps", func() error { return unlike(r.get(node).Annotations[v1alpha2.AnnotationKeptLabels], keys) })
}

const (
	inGroup = "g=u u=nodeunits.superedge.io"
	inUnit  = "u=nodeunits.superedge.io"
)

// TestInUse: the labels of a group that is deleted stay while a Service names the key, and go once
// none does, or once that is allowed. A label that an admin removes is not put back. No definition
// of a Grid is installed.
func TestInUse(t *testing.T) {
	t.Parallel()
	r := newRunning(t, nil)
	r.groupInUse()
	begin := time.Now()
	r.kubectl("", "delete", "nodegroup", "g")
	t.Logf("the group is gone %s after kubectl delete began", time.Since(begin).Round(time.Millisecond))
	r.records("a", "g")
	r.labels("a", inGroup)
	wait.Until(r.t, "the unit says that the label is in use", func() error {
		for _, c := range r.unit("u").Status.Conditions {
			if c.Type == v1alpha2.ConditionInUse {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", r.unit("u").Status.Conditions)
	})

	r.kubectl("", "annotate", "service", "web", "topologyKeys-")
	r.labels("a", inUnit)
	r.records("a", "")

	r.kubectl("", "annotate", "service", "web", `topologyKeys=["g"]`)
	r.create(nodeGroup("v1alpha2", "g", `{"nodeUnits": ["u"]}`))
	r.labels("a", inGroup)
	r.kubectl("", "patch", "nodegroup", "g", "--type=merge", "-p", `{"spec": {"nodeUnits": []}}`)
	r.records("a", "g")
	r.labels("a", inGroup)
	r.kubectl("", "annotate", "nodegroup", "g", "site.superedge.io/allow-removal=g")
	r.labels("a", inUnit)

	r.kubectl("", "annotate", "nodegroup", "g", "site.superedge.io/allow-removal-")
	r.kubectl("", "patch", "nodegroup", "g", "--type=merge", "-p", `{"spec": {"nodeUnits": ["u"]}}`)
	r.labels("a", inGroup)
	r.kubectl("", "delete", "nodegroup", "g")
	r.records("a", "g")
	r.patchNode("a", "admin", `{"metadata": {"labels": {"g": null}}}`)
	r.records("a", "")
	r.sync("later")
	r.labels("a", inUnit)
}

// TestInUseWhileStopped: what goes while the controller does not run is kept all the same, whether
// or not the objects had finalizers.
func TestInUseWhileStopped(t *testing.T) {
	t.Parallel()
	r := newStopped(t)
	stop := r.start(nil)
	r.groupInUse()
	stop()
	for _, o := range []string{"nodegroup/g", "nodeunit/u"} {
		r.kubectl("", "patch", o, "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)
		r.kubectl("", "delete", o)
	}
	r.start(nil)
	r.records("a", "g")
	r.labels("a", "g=u")
	r.kubectl("", "annotate", "node", "a", "site.superedge.io/allow-removal=g")
	r.labels("a", "")
}

// TestDefinitionsDeletedInUse: the definitions go within a minute although a Service names a key,
// and the labels stay. With the definitions, the unit and the group again, they are the group's as
// before.
func TestDefinitionsDeletedInUse(t *testing.T) {
	t.Parallel()
	r := newRunning(t, nil)
	r.groupInUse()
	r.kubectl("", "delete", "crd", "nodegroups.site.superedge.io", "nodeunits.site.superedge.io", "--timeout=60s")
	r.records("a", "g")
	r.labels("a", "g=u")

	r.installCRDs()
	r.node("b") // the edit below takes half of the Nodes: a key in use outlives one that takes more
	r.create(nodeUnit("v1alpha2", "u", `{"nodes": ["a", "b"]}`), nodeGroup("v1alpha2", "g", `{"nodeUnits": ["u"]}`))
	r.records("a", "")
	r.labels("a", inGroup)
	r.labels("b", inGroup)
	r.kubectl("", "patch", "nodeunit", "u", "--type=merge", "-p", `{"spec": {"nodes": ["b"]}}`)
	r.labels("a", "")
}
