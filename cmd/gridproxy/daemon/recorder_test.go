package daemon

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// TestRecorder checks what is sent to an API server. integration/node has a real one.
func TestRecorder(t *testing.T) {
	sent := make(chan corev1.Event, 2)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var e corev1.Event
		if err == nil {
			_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, &e)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		sent <- e
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&e) // the test's own end
	}))
	defer api.Close()
	r, err := newRecorder(t.Context(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if err := r.connect(&rest.Config{Host: api.URL}, api.Client()); err != nil {
		t.Fatal(err)
	}

	// As watch hands them out: without kind and apiVersion.
	r.Event(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u"}}, corev1.EventTypeWarning, "Reason", "text")
	r.onNode("FailedToStartMetricServer", "in use")
	got := map[string]corev1.Event{}
	for range 2 {
		e := wait.Receive(t, "an Event is sent", sent)
		got[e.InvolvedObject.Kind] = e
	}
	if e := got["Service"]; e.Namespace != "ns" || e.InvolvedObject.Name != "web" || e.InvolvedObject.UID != "u" || e.Type != "Warning" ||
		e.Reason != "Reason" || e.Message != "text" || e.Source.Component != "gridproxy" || e.Source.Host != "n1" {
		t.Errorf("Event on the Service: %+v", e)
	}
	if e := got["Node"]; e.Namespace != "default" || e.InvolvedObject.Name != "n1" || e.InvolvedObject.UID != "n1" {
		t.Errorf("Event on the Node: %+v", e)
	}
}
