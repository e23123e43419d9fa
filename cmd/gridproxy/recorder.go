package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// recorder writes Events to the API server. It never blocks: an Event that does not fit into its
// queue is lost, and one that cannot be sent is retried for some minutes.
type recorder struct {
	record.EventRecorder
	close func()
}

func newRecorder(ctx context.Context, client kubernetes.Interface, node string) *recorder {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	source := corev1.EventSource{Component: "gridproxy", Host: node}
	return &recorder{EventRecorder: b.NewRecorder(scheme.Scheme, source), close: b.Shutdown}
}

// onNode records a Warning about this node. Its UID is the name, as in Events of the kubelet and of
// kube-proxy, so that the daemon need not know the real one.
func (r *recorder) onNode(node, reason, message string) {
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(node)}
	r.Event(ref, corev1.EventTypeWarning, reason, message)
}
