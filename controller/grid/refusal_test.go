package grid

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gridproxy/controller/expand"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestRefusal: what is final, and what another attempt may repair (B-22). The server's own words
// are tested in integration/grids.
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
		exists bool
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

// TestRights: what the authorizer refused is tried again with a growing pause, and nothing else is.
func TestRights(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	// The words of a real API server: integration/grids has it restarted.
	denied := apierrors.NewForbidden(deployments, "web", errors.New(`User "system:serviceaccount:gridproxy:grid-controller" cannot patch resource "deployments" in API group "apps" in the namespace "default"`))
	quota := apierrors.NewForbidden(deployments, "web", errors.New("exceeded quota: pods, requested: 2"))
	if !lacksRight(fmt.Errorf("applying: %w", denied)) || lacksRight(quota) {
		t.Error("a right that is missing and a quota are not told apart")
	}
	start := time.Unix(1000, 0)
	r := &remembered{applied: map[string]expand.Applied{}, forbidden: map[string]bool{}}
	refuse := func(now time.Time) {
		for child, right := range map[string]bool{"denied": true, "also": true, "quota": false} {
			r.applied[child] = expand.Applied{}
			r.forbid(child, right, now)
		}
	}
	now := start
	for _, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		pause *= time.Second
		refuse(now)
		r.see("", now.Add(pause-1))
		if got := r.rights.wait(now); got != pause || len(r.applied) != 3 {
			t.Fatalf("the pause is %s, want %s; %d are remembered before its end", got, pause, len(r.applied))
		}
		now = now.Add(pause)
		if r.see("", now); len(r.applied) != 1 {
			t.Fatalf("after the pause %d are remembered, want the quota's alone", len(r.applied))
		}
	}
	if got := r.rights.wait(now); got != 0 {
		t.Errorf("nothing is refused and a pause is %s", got)
	}
	r.forbid("denied", true, now)
	if got := r.rights.wait(now); got != firstDenial {
		t.Errorf("after a success the pause is %s", got)
	}
}
