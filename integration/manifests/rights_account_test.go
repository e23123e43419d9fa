package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// home is where the accounts and the controller's Lease are.
const home = "gridproxy"

// read finds the rights of a manifest of deploy.
func read(t *testing.T, manifest string) []Right {
	t.Helper()
	all, err := Read("../../deploy/" + manifest)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func textOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func without(all []Right, n int) []Right { return slices.Delete(slices.Clone(all), n, n+1) }

// newAccount makes a user that may do so much and nothing else, and waits until the API server knows it.
func newAccount(t *testing.T, c *nodes.Cluster, name string, rights []Right) (user string) {
	t.Helper()
	ctx := t.Context()
	_, err := c.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	user = "system:serviceaccount:" + home + ":" + name
	rules := map[string][]rbacv1.PolicyRule{}
	for _, r := range rights {
		rules[r.Namespace] = append(rules[r.Namespace], r.rule())
	}
	for namespace, rules := range rules {
		if err := bind(ctx, c, namespace, name, user, rules); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "the API server knows the rights of "+name, func() error { return allowed(ctx, c, user, rights) })
	return user
}

func bind(ctx context.Context, c *nodes.Cluster, namespace, name, user string, rules []rbacv1.PolicyRule) error {
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	rbac := c.Client.RbacV1()
	if namespace == "" {
		if _, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
			return err
		}
		_, err := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		return err
	}
	ref.Kind = "Role"
	if _, err := rbac.Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := rbac.RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	return err
}

// allowed asks the authorizer for the last right of each namespace: a role is known as a whole.
func allowed(ctx context.Context, c *nodes.Cluster, user string, rights []Right) error {
	last := map[string]Right{}
	for _, r := range rights {
		last[r.Namespace] = r
	}
	for _, r := range last {
		resource, sub, _ := strings.Cut(r.Resource, "/")
		attributes := &authorizationv1.ResourceAttributes{
			Namespace: r.Namespace, Group: r.Group, Resource: resource, Subresource: sub, Verb: r.Verb, Name: strings.Join(r.Names, ""),
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: attributes}}
		answer, err := c.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if !answer.Status.Allowed {
			return fmt.Errorf("%s is not allowed yet", r)
		}
	}
	return nil
}

// refused are the requests that the authorizer refused.
func refused(count *nodes.Count) []nodes.Request {
	return count.Requests(func(r nodes.Request) bool { return r.Code == 403 })
}

// idle waits until every right was used, and tells those that were not.
func idle(t *testing.T, all []Right, count *nodes.Count) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := wait.Usual.For(t.Context(), func(context.Context) error { // an answer is noted after it was given
		left := unused(all, count.Requests(nil))
		return wait.Check(len(left) == 0, "nothing needs %v: take it out of the chart", left)
	})
	if err != nil {
		t.Errorf("%v; the requests were:\n%s", err, nodes.Tally(count.Requests(nil)))
	}
	for _, r := range unused(all, count.Requests(nil)) {
		names[r.String()] = true
	}
	return names
}

// unused returns the rights that no request needed. An apply needs patch, and create where there
// is nothing yet. No request is for a Grid's finalizers: the API server checks that right when a
// child is written.
func unused(all []Right, requests []nodes.Request) []Right {
	asked := map[string]bool{}
	for _, r := range requests {
		object, verbs := r.Object(), []string{r.Verb}
		if r.Verb == "apply" {
			verbs = []string{"patch"}
			if r.Code == 201 {
				verbs = append(verbs, "create")
			}
		}
		for _, verb := range verbs {
			asked[verb+" "+object+" "] = true
			asked[verb+" "+object+" "+r.Name] = true
		}
	}
	var idle []Right
	for _, r := range all {
		if !strings.HasSuffix(r.Resource, "/finalizers") && !asked[r.Verb+" "+r.Object()+" "+strings.Join(r.Names, "")] {
			idle = append(idle, r)
		}
	}
	return idle
}
