package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Right is one thing that an account may do: a rule of RBAC with one group, one resource and one verb.
type Right struct {
	Namespace string // "" = in all, by a ClusterRole
	Group     string
	Resource  string // with its subresource, as RBAC writes it: deploymentgrids/status
	Verb      string
	Names     []string // of objects; empty = all
}

// Object is the resource with its group, as kubectl writes it: deployments.apps, deploymentgrids.superedge.io/status.
func (r Right) Object() string {
	resource, sub, found := strings.Cut(r.Resource, "/")
	if r.Group != "" {
		resource += "." + r.Group
	}
	if found {
		resource += "/" + sub
	}
	return resource
}

func (r Right) String() string {
	s := r.Verb + " " + r.Object()
	if len(r.Names) > 0 {
		s += " " + strings.Join(r.Names, " ")
	}
	if r.Namespace != "" {
		s += " in " + r.Namespace
	}
	return s
}

// Read finds the rights in a manifest, one by one: those of its ClusterRoles and Roles.
func Read(manifest string) ([]Right, error) {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return nil, fmt.Errorf("reading rights: %w", err)
	}
	var rights []Right
	for document := range strings.SplitSeq("\n"+string(text), "\n---") {
		var role rbacv1.Role // a ClusterRole has the same fields, and no namespace
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			return nil, fmt.Errorf("reading the rights in %s: %w", manifest, err)
		}
		if role.Kind != "Role" && role.Kind != "ClusterRole" {
			continue
		}
		for _, rule := range role.Rules {
			rights = append(rights, expand(role.Namespace, rule)...)
		}
	}
	if len(rights) == 0 {
		return nil, fmt.Errorf("reading rights: %s has neither a Role nor a ClusterRole with rules: %w", manifest, errNone)
	}
	slices.SortStableFunc(rights, func(a, b Right) int { return cmp.Compare(a.String(), b.String()) })
	return rights, nil
}

var errNone = errors.New("no rights")

// expand writes a rule as single rights. Each named object is a right of its own.
func expand(namespace string, rule rbacv1.PolicyRule) []Right {
	var rights []Right
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				r := Right{Namespace: namespace, Group: group, Resource: resource, Verb: verb}
				for _, name := range rule.ResourceNames {
					named := r
					named.Names = []string{name}
					rights = append(rights, named)
				}
				if len(rule.ResourceNames) == 0 {
					rights = append(rights, r)
				}
			}
		}
	}
	return rights
}

// rule is the right as a rule again.
func (r Right) rule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: []string{r.Verb}, ResourceNames: r.Names}
}
