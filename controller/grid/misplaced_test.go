package grid

import (
	"context"
	"errors"
	"testing"
	"time"

	"gridproxy/controller/grid/expand"
	"gridproxy/controller/gridspec"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podLister answers LISTs of Pods, and keeps how it was asked.
type podLister struct {
	client.Reader
	pods  []corev1.Pod
	err   error
	asked []client.ListOptions
}

// List answers with the Pods.
func (p *podLister) List(_ context.Context, l client.ObjectList, options ...client.ListOption) error {
	p.asked = append(p.asked, *(&client.ListOptions{}).ApplyOptions(options))
	l.(*corev1.PodList).Items = p.pods
	return p.err
}

// TestPodsAreSearchedOnce: a Grid's Pods are listed once in the life of a controller, from the API
// server's watch cache, and again only if that failed.
func TestPodsAreSearchedOnce(t *testing.T) {
	live := &podLister{err: errors.New("no answer")}
	memory := newMemory()
	m := &misplaced{live: live, now: time.Now, of: map[expand.Kind]*watched{expand.DeploymentGrid: {kind: deploymentGrid(), memory: memory}}}
	known := memory.of(types.NamespacedName{Namespace: "default", Name: "web"}, "1")
	observed := expand.Observed{
		Grid:  expand.Grid{Spec: gridspec.Spec{Kind: expand.DeploymentGrid, Key: "zone"}, Namespace: "default", Name: "web", UID: "1"},
		Units: map[string][]string{"a": {"node-a"}, "b": {"node-b"}},
		Children: []expand.Live{{
			Name: "web-a", Owner: "1",
			Selects: expand.MakePairs(map[string]string{"app": "web"}), NodeSelector: expand.MakePairs(map[string]string{"zone": "a"}),
		}},
	}
	pod := func(name, node string) corev1.Pod {
		owner := metav1.OwnerReference{Kind: "ReplicaSet", Name: "web-a-5d5", Controller: new(true)}
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"pod-template-hash": "5d5"}, OwnerReferences: []metav1.OwnerReference{owner}},
			Spec:       corev1.PodSpec{NodeName: node},
		}
	}
	if astray, err := m.searchOnce(t.Context(), observed, known); err == nil || astray {
		t.Errorf("astray: %t, %v", astray, err)
	}
	live.err, live.pods = nil, []corev1.Pod{pod("right", "node-a"), pod("wrong", "node-b")}
	for i, want := range []bool{true, false} {
		if astray, err := m.searchOnce(t.Context(), observed, known); err != nil || astray != want {
			t.Errorf("search %d: astray: %t, %v", i, astray, err)
		}
	}
	if found := memory.misplacedPods(known); len(found) != 1 || found[0].Name != "wrong" {
		t.Errorf("misplaced: %v", found)
	}
	if len(live.asked) != 2 {
		t.Errorf("%d lists, want the one that failed and one more", len(live.asked))
	}
	for _, o := range live.asked {
		if o.Raw == nil || o.Raw.ResourceVersion != "0" || o.LabelSelector.String() != "app=web" || o.Namespace != "default" {
			t.Errorf("asked with %+v", o)
		}
	}
}
