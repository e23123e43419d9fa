package node

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	asJSON     = "application/json"
	asProtobuf = "application/vnd.kubernetes.protobuf"
	asMetadata = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// TestSmallestForms measures the forms in which the API server sends objects, and checks that the
// source asks for the smallest one of each kind.
func TestSmallestForms(t *testing.T) {
	t.Parallel()
	w := newWatchedCluster(t)
	w.load.addNode(self)
	w.setLocation(self, "beijing")
	for i := range 40 {
		w.closeService(fmt.Sprintf("web-%d", i), `["location"]`)
		w.addLargeSlice(fmt.Sprintf("web-%d", i))
		w.addRealisticNode(fmt.Sprintf("node-%d", i))
	}
	w.watch()
	w.settle()
	client, err := rest.HTTPClientFor(w.Admin())
	must(w.t, err)
	size := func(path, accept, encoding string) int { return w.sizeOf(client, path, accept, encoding) }
	for _, kind := range []string{"api/v1/services", "apis/discovery.k8s.io/v1/endpointslices", "api/v1/nodes"} {
		json, protobuf, compressed := size(kind, asJSON, "identity"), size(kind, asProtobuf, "identity"), size(kind, asProtobuf, "gzip")
		t.Logf("%s: JSON %d bytes, protobuf %d, protobuf with gzip %d", kind, json, protobuf, compressed)
		if protobuf >= json || compressed > protobuf {
			t.Errorf("%s: protobuf is no smaller than JSON, or gzip makes it larger", kind)
		}
	}
	full, metadata := size("api/v1/nodes", asProtobuf, "identity"), size("api/v1/nodes", asProtobuf+asMetadata, "identity")
	t.Logf("one Node, and so one heartbeat: %d bytes whole, %d bytes of metadata", full/41, metadata/41)
	if metadata >= full {
		t.Error("the metadata of Nodes is no smaller than Nodes")
	}
	w.asked.mu.Lock()
	defer w.asked.mu.Unlock()
	packed := false
	for _, q := range w.asked.all {
		if q.kind == "stream" {
			t.Errorf("%s are read as a stream, which API servers before 1.37 do not compress", q.resource)
		}
		packed = packed || q.resource == "endpointslices" && q.packed
		if !strings.HasPrefix(q.accept, asProtobuf) || (q.resource == "nodes" && q.selector != "") != strings.Contains(q.accept, "as=PartialObjectMetadata") {
			t.Errorf("%s %s with label selector %q: asked for as %q", q.kind, q.resource, q.selector, q.accept)
		}
	}
	if !packed {
		t.Error("the EndpointSlices at the start, of more than 128 KiB, were not compressed")
	}
}

// sizeOf is how many bytes an answer has on the wire.
func (w *watchedCluster) sizeOf(client *http.Client, path, accept, encoding string) int {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, fmt.Sprintf("https://%s/%s", w.API.Addr, path), nil)
	must(w.t, err)
	request.Header.Set("Accept", accept)
	request.Header.Set("Accept-Encoding", encoding)
	answer, err := client.Do(request)
	must(w.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(w.t, err)
	if answer.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: status %d: %s", path, answer.StatusCode, body)
	}
	return len(body)
}

// addLargeSlice has 100 endpoints, as the controller writes them.
func (w *watchedCluster) addLargeSlice(service string) {
	w.t.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: service + "-large", Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("web"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for i := range 100 {
		node := fmt.Sprintf("node-%d", i%40)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.244.%d.%d", i%40, i)}, NodeName: &node,
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: fmt.Sprintf("%s-5d78c9869d-%05d", service, i), UID: "8c3cb0d8-6d4e-4c0b-9f0e-3c1f6f4c0a3e"},
		})
	}
	_, err := w.api.DiscoveryV1().EndpointSlices("default").Create(w.ctx, slice, metav1.CreateOptions{})
	must(w.t, err)
}

// addRealisticNode has labels, conditions and images as a kubelet writes them.
func (w *watchedCluster) addRealisticNode(name string) {
	w.t.Helper()
	set := map[string]string{"location": "guangzhou"}
	for _, key := range []string{"beta.kubernetes.io/arch", "beta.kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/hostname", "kubernetes.io/os", "node.kubernetes.io/instance-type"} {
		set[key] = "some-value"
	}
	node, err := w.api.CoreV1().Nodes().Create(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}}, metav1.CreateOptions{FieldManager: "kubelet"})
	must(w.t, err)
	for i := range 50 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names:     []string{fmt.Sprintf("registry.example.com/team/image-%d@sha256:%064d", i, i), fmt.Sprintf("registry.example.com/team/image-%d:v1.%d", i, i)},
			SizeBytes: 123456789,
		})
	}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: "KubeletHasNoPressure", Message: "kubelet has no pressure",
			LastHeartbeatTime: metav1.NewTime(time.Unix(1, 0)), LastTransitionTime: metav1.NewTime(time.Unix(1, 0)),
		})
	}
	_, err = w.api.CoreV1().Nodes().UpdateStatus(w.ctx, node, metav1.UpdateOptions{FieldManager: "kubelet"})
	must(w.t, err)
}
