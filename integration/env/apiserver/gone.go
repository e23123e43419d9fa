package apiserver

import (
	"encoding/json"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// touchEvent returns an object that no client watches.
func touchEvent() *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "touch-", Namespace: "default"},
		InvolvedObject: corev1.ObjectReference{Namespace: "default", Name: "touch"},
	}
}

// firstEventIsGone reads one event of a watch.
func firstEventIsGone(stream io.Reader) bool {
	var event struct {
		Type   string
		Object metav1.Status
	}
	err := json.NewDecoder(stream).Decode(&event)
	return err == nil && event.Type == "ERROR" && event.Object.Code == http.StatusGone
}
