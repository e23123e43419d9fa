package need_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Informers of client-go, which is what proxies watch by, follow what is put and removed; with the
// selectors of proxies, and as metadata only.
func TestInformers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := need.ServeFakeAPI(l)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Put(node("a"), node("b"), service("first", "10.0.0.1"), service("headless", "None")); err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: s.URL()}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	one := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = "metadata.name=b"
	})).Core().V1().Nodes().Informer()
	services := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = "spec.clusterIP!=None"
	})).Core().V1().Services().Informer()
	nodes := metadatainformer.NewSharedInformerFactory(meta, 0).ForResource(corev1.SchemeGroupVersion.WithResource("nodes")).Informer()
	inUnit := metadatainformer.NewFilteredSharedInformerFactory(meta, 0, "", func(o *metav1.ListOptions) {
		o.LabelSelector = "unit=x"
	}).ForResource(corev1.SchemeGroupVersion.WithResource("nodes")).Informer()
	for _, i := range []cache.SharedIndexInformer{one, services, nodes, inUnit} {
		go i.Run(t.Context().Done())
	}
	holds(t, one, "b")
	holds(t, nodes, "a", "b")
	holds(t, services, "default/first")

	if err := errors.Join(s.Put(service("second", "10.0.0.2")), s.Remove(service("first", "10.0.0.1"), node("a")), s.Put(node("c"))); err != nil {
		t.Fatal(err)
	}
	holds(t, services, "default/second")
	holds(t, nodes, "b", "c")
	holds(t, one, "b")

	in, out := node("b"), node("b")
	in.Labels, out.Labels = map[string]string{"unit": "x"}, map[string]string{"unit": "y"}
	for _, step := range []struct {
		put  *corev1.Node
		want []string
	}{{in, []string{"b"}}, {out, nil}} {
		if err := s.Put(step.put); err != nil {
			t.Fatal(err)
		}
		holds(t, inUnit, step.want...)
	}
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func service(name, ip string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.ServiceSpec{ClusterIP: ip}}
}

// holds waits until an informer knows just these objects.
func holds(t *testing.T, i cache.SharedIndexInformer, want ...string) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("the informer knows %q", want), func() error {
		got := slices.Sorted(slices.Values(i.GetStore().ListKeys()))
		return wait.Check(i.HasSynced() && slices.Equal(got, want), "synced: %t; it knows %q", i.HasSynced(), got)
	})
}
