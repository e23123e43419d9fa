package agent

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestSlimGrids: a Grid of this hub is kept as it is, and of all others what tells whose they are.
func TestSlimGrids(t *testing.T) {
	meta := func(hub string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "shop", Name: "pos", UID: "1", Generation: 2, ResourceVersion: "3", Labels: map[string]string{v1alpha1.LabelHub: hub},
			Annotations:   map[string]string{v1alpha1.AnnotationFrom: "other/4", "large": "text"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}, Finalizers: []string{"f"},
		}
	}
	bare := metav1.ObjectMeta{
		Namespace: "shop", Name: "pos", UID: "1", Generation: 2, ResourceVersion: "3",
		Annotations: map[string]string{v1alpha1.AnnotationFrom: "other/4"},
	}
	whole := meta("hub")
	whole.ManagedFields = nil
	spec, service := v1.WorkloadGridSpec{GridUniqKey: "location"}, v1.ServiceGridSpec{GridUniqKey: "location"}
	slim := slimGrids("hub")
	for _, kind := range []client.Object{&v1.DeploymentGrid{}, &v1.StatefulSetGrid{}, &v1.ServiceGrid{}} {
		var ours, others, wantOurs, wantOthers client.Object
		switch kind.(type) {
		case *v1.DeploymentGrid:
			ours, others = &v1.DeploymentGrid{ObjectMeta: meta("hub"), Spec: spec}, &v1.DeploymentGrid{ObjectMeta: meta("x"), Spec: spec}
			wantOurs, wantOthers = &v1.DeploymentGrid{ObjectMeta: whole, Spec: spec}, &v1.DeploymentGrid{ObjectMeta: bare}
		case *v1.StatefulSetGrid:
			ours, others = &v1.StatefulSetGrid{ObjectMeta: meta("hub"), Spec: spec}, &v1.StatefulSetGrid{ObjectMeta: meta("x"), Spec: spec}
			wantOurs, wantOthers = &v1.StatefulSetGrid{ObjectMeta: whole, Spec: spec}, &v1.StatefulSetGrid{ObjectMeta: bare}
		case *v1.ServiceGrid:
			ours, others = &v1.ServiceGrid{ObjectMeta: meta("hub"), Spec: service}, &v1.ServiceGrid{ObjectMeta: meta("x"), Spec: service}
			wantOurs, wantOthers = &v1.ServiceGrid{ObjectMeta: whole, Spec: service}, &v1.ServiceGrid{ObjectMeta: bare}
		}
		edited, _ := ours.DeepCopyObject().(client.Object)
		edited.SetLabels(nil)
		edited.SetManagedFields(nil)
		edited.SetAnnotations(map[string]string{v1alpha1.AnnotationFrom: "hub/4"})
		if got, err := slim(edited.DeepCopyObject()); err != nil || !reflect.DeepEqual(got, edited) {
			t.Errorf("%T without its label: %v, %+v", kind, err, got)
		}
		for had, want := range map[client.Object]client.Object{ours: wantOurs, others: wantOthers} {
			if got, err := slim(had); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%T: %v, %+v, want %+v", kind, err, got, want)
			}
		}
	}
}

// TestBoundedMapper: the requests by which it is found out what an API server serves have an end,
// however long it does not answer, and those of the client beside it have none.
func TestBoundedMapper(t *testing.T) {
	asked := &deadlines{}
	shared := &http.Client{Transport: asked}
	m, err := boundedMapper(&rest.Config{Host: "http://192.0.2.1"}, shared)
	must(t, err)
	if _, err := m.RESTMapping(v1.GroupVersion().WithKind("DeploymentGrid").GroupKind()); err == nil {
		t.Error("no error")
	}
	if asked.without > 0 || asked.with == 0 || shared.Timeout != 0 {
		t.Errorf("%+v, %s", asked, shared.Timeout)
	}
}

// deadlines counts requests that have a deadline, and those that have none.
type deadlines struct{ with, without int }

func (d *deadlines) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, has := r.Context().Deadline(); has {
		d.with++
	} else {
		d.without++
	}
	return nil, http.ErrHandlerTimeout
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantText(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("the error is %v, want %q in it", err, part)
	}
}
