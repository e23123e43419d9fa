package main

import (
	"context"
	"fmt"
	"net/http"

	"gridproxy/topology/watch"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// recorder writes Events to the API server. It never blocks: an Event that does not fit into its
// queue is lost, and one that cannot be sent is retried for some minutes.
type recorder struct {
	record.EventRecorder
	close func()
}

func newRecorder(ctx context.Context, config *rest.Config, shared *http.Client, node string) (*recorder, error) {
	scheme, err := watch.Scheme()
	if err != nil {
		return nil, fmt.Errorf("making a client for Events: %w", err)
	}
	client, err := watch.ForGroup(config, shared, scheme, corev1.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("making a client for Events at %s: %w", config.Host, err)
	}
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(eventSink{ctx, client})
	source := corev1.EventSource{Component: "gridproxy", Host: node}
	return &recorder{EventRecorder: b.NewRecorder(scheme, source), close: b.Shutdown}, nil
}

// onNode records a Warning about this node. Its UID is the name, as in Events of the kubelet and of
// kube-proxy, so that the daemon need not know the real one.
func (r *recorder) onNode(node, reason, message string) {
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(node)}
	r.Event(ref, corev1.EventTypeWarning, reason, message)
}

// eventSink is a record.EventSink: each Event is sent to its own namespace.
type eventSink struct {
	ctx    context.Context // of the recorder; the interface hands in none
	client rest.Interface
}

func (s eventSink) Create(e *corev1.Event) (*corev1.Event, error) {
	return s.send(s.client.Post().Namespace(e.Namespace).Resource("events").Body(e))
}

func (s eventSink) Update(e *corev1.Event) (*corev1.Event, error) {
	return s.send(s.client.Put().Namespace(e.Namespace).Resource("events").Name(e.Name).Body(e))
}

func (s eventSink) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.send(s.client.Patch(types.StrategicMergePatchType).Namespace(e.Namespace).Resource("events").Name(e.Name).Body(data))
}

func (s eventSink) send(r *rest.Request) (*corev1.Event, error) {
	sent := &corev1.Event{}
	err := r.Do(s.ctx).Into(sent)
	return sent, err
}
