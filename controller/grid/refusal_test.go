package grid

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gridproxy/controller/expand"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestRefusal: what is final, and what another attempt may mend (B-22). The server's own words are tested in
// integration/grids.
func TestRefusal(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	invalid := func(e *field.Error) error { return apierrors.NewInvalid(kind, "web", field.ErrorList{e}) }
	immutable := invalid(field.Invalid(field.NewPath("spec", "selector"), "x", "field is immutable"))
	terminating := apierrors.NewForbidden(deployments, "web", errors.New("unable to create new content in namespace a"))
	terminating.ErrStatus.Details.Causes = append(terminating.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	for _, c := range []struct {
		what   string
		err    error
		stands bool
		want   string // the reason; "" if it is tried again
	}{
		{"no answer", errors.New("connection refused"), true, ""},
		{"a conflict", apierrors.NewConflict(deployments, "web", errors.New("old")), true, ""},
		{"a conflict of appliers", apierrors.NewApplyConflict(nil, "somebody owns it"), false, ""},
		{"too many requests", apierrors.NewTooManyRequests("later", 1), true, ""},
		{"not found", apierrors.NewNotFound(deployments, "web"), true, ""},
		{"not known who we are", apierrors.NewUnauthorized("token"), true, ""},
		{"a server's timeout", apierrors.NewServerTimeout(deployments, "patch", 1), true, ""},
		{"a request's timeout", apierrors.NewTimeoutError("late", 1), true, ""},
		{"any other 500", apierrors.NewInternalError(errors.New("etcd")), true, ""},
		{"503", apierrors.NewServiceUnavailable("starting"), true, ""},
		{"a namespace that goes away", terminating, false, ""},
		{"forbidden", apierrors.NewForbidden(deployments, "web", errors.New("quota")), false, expand.ReasonRefused},
		{"bad request", apierrors.NewBadRequest("strict decoding"), false, expand.ReasonRefused},
		{"too large", apierrors.NewRequestEntityTooLargeError("3 MB"), false, expand.ReasonRefused},
		{"invalid", invalid(field.Required(field.NewPath("spec", "selector"), "")), true, expand.ReasonRefused},
		{"a typed patch", apierrors.NewInternalError(errors.New("failed to create typed patch object (a/b; apps/v1, Kind=Deployment): x")), true, expand.ReasonRefused},
		{"immutable", immutable, true, expand.ReasonImmutableField},
		{"immutable, but it does not exist", immutable, false, expand.ReasonRefused},
		{"a StatefulSet", invalid(field.Forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas' are forbidden")), true, expand.ReasonImmutableField},
		{"a Service's address", invalid(field.Invalid(field.NewPath("spec", "clusterIPs").Index(0), "None", "may not change once set")), true, expand.ReasonImmutableField},
	} {
		t.Run(c.what, func(t *testing.T) {
			problem := refusal(fmt.Errorf("applying: %w", c.err), c.stands)
			if problem == nil {
				problem = &expand.Problem{}
			}
			if problem.Reason != c.want {
				t.Errorf("reason %q, want %q", problem.Reason, c.want)
			}
			if c.want != "" && !strings.Contains(problem.Message, c.err.Error()) {
				t.Errorf("the message %q is not in the server's words: %v", problem.Message, c.err)
			}
		})
	}
}
