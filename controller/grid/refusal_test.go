package grid

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gridproxy/controller/grid/expand"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestRefusal: what is a refusal, and what another attempt may repair immediately (B-22). The
// server's own words are tested in integration/grids.
func TestRefusal(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	invalid := func(e *field.Error) error { return apierrors.NewInvalid(kind, "web", field.ErrorList{e}) }
	immutable := invalid(field.Invalid(field.NewPath("spec", "selector"), "x", "field is immutable"))
	terminating := apierrors.NewForbidden(deployments, "web", errors.New("unable to create new content in namespace a"))
	terminating.ErrStatus.Details.Causes = append(terminating.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	policy := func(code int32, reason metav1.StatusReason, says string) error { // as the API server makes it
		err := apierrors.NewForbidden(deployments, "web", errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "+says))
		err.ErrStatus.Code, err.ErrStatus.Reason = code, reason
		return err
	}
	webhook := func(code int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: `admission webhook "w.example.com" denied the request: no`}}
	}
	for _, c := range []struct {
		what   string
		err    error
		exists bool
		want   string // the reason; "" if it is tried again immediately
	}{
		{"a policy", policy(422, metav1.StatusReasonInvalid, "no"), true, expand.ReasonRefused},
		{"a policy that says what validation says", policy(422, metav1.StatusReasonInvalid, "field is immutable"), true, expand.ReasonRefused},
		{"a policy with reason Unauthorized", policy(401, metav1.StatusReasonUnauthorized, "no"), true, expand.ReasonRefused},
		{"a webhook", webhook(400), true, expand.ReasonRefused},
		{"a webhook that wants a retry", webhook(429), true, ""},
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
		{"a namespace that goes away", terminating, false, expand.ReasonRefused},
		{"forbidden", apierrors.NewForbidden(deployments, "web", errors.New("quota")), false, expand.ReasonRefused},
		{"a right that is missing", apierrors.NewForbidden(deployments, "web", errors.New(`User "x" cannot patch resource "deployments"`)), true, expand.ReasonRefused},
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
			problem := refusal(fmt.Errorf("applying: %w", c.err), c.exists)
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

// TestForbidden: which refusals may end without a change of the child, so that any change of the
// Grid has them retried, and which are about rights, in the words of a real API server whose
// authorizer refuses; integration/grids has it restarted.
func TestForbidden(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	const right = `User "system:serviceaccount:gridproxy:grid-controller" cannot patch resource "deployments" in API group "apps" in the namespace "default"`
	policy := apierrors.NewForbidden(deployments, "web", errors.New("ValidatingAdmissionPolicy 'p' denied request: no"))
	policy.ErrStatus.Code, policy.ErrStatus.Reason = 422, metav1.StatusReasonInvalid
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "web", field.ErrorList{field.Required(field.NewPath("spec"), "")})
	for _, c := range []struct {
		what              string
		err               error
		forbidden, rights bool
	}{
		{"a quota", apierrors.NewForbidden(deployments, "web", errors.New("exceeded quota: pods, requested: 2")), true, false},
		{"a policy, with 422", policy, true, false},
		{"a webhook, with 400", apierrors.NewBadRequest(`admission webhook "w.example.com" denied the request without explanation`), true, false},
		{"a right", apierrors.NewForbidden(deployments, "web", errors.New(right)), true, true},
		{"validation", invalid, false, false},
		{"no answer", errors.New("connection refused"), false, false},
	} {
		err := fmt.Errorf("applying: %w", c.err)
		if forbidden(err) != c.forbidden || lacksRight(err) != c.rights {
			t.Errorf("%s: forbidden is %t, want %t; a right is missing: %t, want %t", c.what, forbidden(err), c.forbidden, lacksRight(err), c.rights)
		}
	}
}

// TestAnswersAreBounded: what a webhook says is kept for each unit.
func TestAnswersAreBounded(t *testing.T) {
	problem := refusal(apierrors.NewBadRequest(strings.Repeat("x", 1<<20)), true)
	if n := len(problem.Message); n > answerMax+200 || !strings.HasSuffix(problem.Message, "it is retried after pauses of 10s to 10m") {
		t.Errorf("%d bytes are kept: ...%s", n, problem.Message[n-100:])
	}
}
