package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"gridproxy/topology/watch"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// recorder writes Events to the API server. It never blocks: an Event that does not fit into its
// queue is lost, and one that cannot be sent, as before connect, is retried for some minutes.
type recorder struct {
	record.EventRecorder
	node  string
	close func()
	sink  *eventSink
}

func newRecorder(ctx context.Context, node string) (*recorder, error) {
	scheme, err := watch.Scheme()
	if err != nil {
		return nil, fmt.Errorf("making a client for Events: %w", err)
	}
	b := record.NewBroadcaster(record.WithContext(ctx))
	sink := &eventSink{ctx: ctx, scheme: scheme}
	b.StartRecordingToSink(sink)
	source := corev1.EventSource{Component: "gridproxy", Host: node}
	return &recorder{EventRecorder: b.NewRecorder(scheme, source), node: node, close: b.Shutdown, sink: sink}, nil
}

// connect sets the API server that Events go to. Before the first call none is sent.
func (r *recorder) connect(config *rest.Config, shared *http.Client) error {
	client, err := watch.ForGroup(config, shared, r.sink.scheme, corev1.SchemeGroupVersion)
	if err != nil {
		return fmt.Errorf("making a client for Events at %s: %w", config.Host, err)
	}
	r.sink.client.Store(&client)
	return nil
}

// onNode records a Warning about this node. Without a recorder, as with manifests, it does
// nothing. The UID is the name, as in Events of the kubelet and of kube-proxy, so that the
// daemon need not know the real one.
func (r *recorder) onNode(reason, message string) {
	if r != nil {
		ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: r.node, UID: types.UID(r.node)}
		r.Event(ref, corev1.EventTypeWarning, reason, message)
	}
}

// eventSink is a record.EventSink: each Event is sent to its own namespace.
type eventSink struct {
	ctx    context.Context // of the recorder; the interface hands in none
	scheme *runtime.Scheme
	client atomic.Pointer[rest.Interface] // nil = not connected
}

// errNotConnected makes the broadcaster try again, as does an API server that is away.
var errNotConnected = errors.New("there is no connection to an API server yet")

func (s *eventSink) Create(e *corev1.Event) (*corev1.Event, error) {
	return s.send(func(c rest.Interface) *rest.Request {
		return c.Post().Namespace(e.Namespace).Resource("events").Body(e)
	})
}

func (s *eventSink) Update(e *corev1.Event) (*corev1.Event, error) {
	return s.send(func(c rest.Interface) *rest.Request {
		return c.Put().Namespace(e.Namespace).Resource("events").Name(e.Name).Body(e)
	})
}

func (s *eventSink) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.send(func(c rest.Interface) *rest.Request {
		return c.Patch(types.StrategicMergePatchType).Namespace(e.Namespace).Resource("events").Name(e.Name).Body(data)
	})
}

func (s *eventSink) send(request func(rest.Interface) *rest.Request) (*corev1.Event, error) {
	client := s.client.Load()
	if client == nil {
		return nil, errNotConnected
	}
	sent := &corev1.Event{}
	err := request(*client).Do(s.ctx).Into(sent)
	return sent, err
}
