package grid

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"gridproxy/controller/grid/expand"
	"gridproxy/topology/excerpt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusal returns why the API server does not accept a child; nil if the same request may
// succeed immediately, or the error is not the API server's. No refusal is final: a port that
// is taken and a wrong field differ only in the texts. See retries for when it is tried again.
// exists: the child exists already, so the change may be what is refused.
//
// Server-side apply answers 500 where an object cannot be merged: unknown fields, and list
// entries with the same key, such as two environment variables of one name.
func refusal(err error, exists bool) *expand.Problem {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	s := status.Status()
	if !isRefusal(s) {
		return nil
	}
	words := excerpt.Fit(s.Message, answerMax)
	if exists && s.Code == http.StatusUnprocessableEntity && !denied(s) && immutable(s) {
		return expand.Immutable(words)
	}
	remedy := "change the template, or remove the cause; it is retried after pauses of 10s to 10m"
	switch {
	case lacksRight(err):
		remedy = "grant the controller the permissions in deploy/grid-controller.yaml; it is retried after pauses of 1s to 30s"
	case forbidden(err):
		remedy = "remove the cause; it is retried after pauses of 10s to 10m, and when anything in the Grid changes, such as an annotation"
	}
	return &expand.Problem{Reason: expand.ReasonRefused, Message: fmt.Sprintf("the API server refuses it: %s; %s", words, remedy)}
}

// forbidden reports whether a policy, a webhook, a quota or missing rights caused the refusal,
// rather than validation. Such a cause may end without a change of the desired child, so any
// change of the Grid triggers a retry.
func forbidden(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsForbidden(err) || errors.As(err, &status) && denied(status.Status())
}

// denied reports whether an admission webhook or a ValidatingAdmissionPolicy refused, which only
// the message shows: its author chooses the status code, and a policy's is 422 by default, as of an
// object that is invalid.
func denied(s metav1.Status) bool {
	return strings.Contains(s.Message, "admission webhook \"") && strings.Contains(s.Message, "\" denied the request") ||
		strings.Contains(s.Message, " is forbidden: ValidatingAdmissionPolicy '") && strings.Contains(s.Message, "' denied request: ")
}

// lacksRight reports whether the API server's authorizer refused, which only its message shows.
// That says nothing about the desired child. An API server that has just started refuses everything
// until it has read its RBAC objects.
func lacksRight(err error) bool {
	return forbidden(err) && strings.Contains(err.Error(), `" cannot `) && strings.Contains(err.Error(), ` resource "`)
}

// isRefusal reports whether the same request would get the same answer until something changes.
func isRefusal(s metav1.Status) bool {
	switch s.Code {
	case http.StatusUnauthorized:
		return denied(s)
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	case http.StatusInternalServerError:
		return strings.Contains(s.Message, "failed to create typed patch object")
	default:
		return s.Code >= 400 && s.Code < 500
	}
}

// immutable reports whether a validation failed because of the previous state of the object.
// Kubernetes has three messages for this: of most fields, of a Service's addresses, and of a
// StatefulSet.
func immutable(s metav1.Status) bool {
	words := []string{"field is immutable", "may not change once set", "updates to statefulset spec for fields other than"}
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s.Message, w) })
}
