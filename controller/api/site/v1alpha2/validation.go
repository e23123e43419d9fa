package v1alpha2

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The CRDs' rules refuse what follows here. It is checked again, for objects that were stored
// before there were rules.

// MaxName is the number of characters that the name of a unit or group may have: it becomes the
// name of a label key.
const MaxName = validation.LabelValueMaxLength

// ValidateName returns an error if the name of a unit or group is too long; nil if it is valid.
func ValidateName(name string) *field.Error {
	if len(name) > MaxName {
		return field.TooLong(field.NewPath("metadata", "name"), name, MaxName)
	}
	return nil
}

// Usable returns the part of s that can be set on a Node, and an error for each other entry,
// sorted by field. One invalid label would make the API server refuse all labels.
func (s SetNode) Usable() (SetNode, field.ErrorList) {
	var errs field.ErrorList
	path := field.NewPath("spec", "setNode")
	use := SetNode{Labels: map[string]LabelValue{}, Annotations: map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		value := s.Labels[key]
		if err := wrong(path.Child("labels"), key, string(value)); err != nil {
			errs = append(errs, err)
			continue
		}
		use.Labels[key] = value
	}
	for _, key := range slices.Sorted(maps.Keys(s.Annotations)) {
		// The API server takes an annotation's prefix in any case.
		if err := wrong(path.Child("annotations"), strings.ToLower(key), ""); err != nil {
			errs = append(errs, err)
			continue
		}
		use.Annotations[key] = s.Annotations[key]
	}
	for i, t := range s.Taints {
		if err := t.wrong(path.Child("taints").Index(i), use.Taints); err != nil {
			errs = append(errs, err)
			continue
		}
		use.Taints = append(use.Taints, t)
	}
	return use, errs
}

// Privileged splits what the Nodes should get into what any unit may set, and what decides about
// other Pods or about rights: NoExecute taints, which evict Pods, and labels under
// node-role.kubernetes.io and node-restriction.kubernetes.io, which the API server keeps even
// kubelets from setting on their own Nodes. The errors name the entries of the second part, sorted
// by field.
func (s SetNode) Privileged() (plain, privileged SetNode, errs field.ErrorList) {
	plain, privileged = SetNode{Labels: map[string]LabelValue{}, Annotations: s.Annotations}, SetNode{Labels: map[string]LabelValue{}}
	path := field.NewPath("spec", "setNode")
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		if PrivilegedKey(key) {
			privileged.Labels[key] = s.Labels[key]
			errs = append(errs, field.Forbidden(path.Child("labels").Key(key), "a label of this prefix is privileged"))
			continue
		}
		plain.Labels[key] = s.Labels[key]
	}
	for _, t := range s.Taints {
		if t.Effect == string(corev1.TaintEffectNoExecute) {
			privileged.Taints = append(privileged.Taints, t)
			errs = append(errs, field.Forbidden(path.Child("taints").Key(t.Key), "a taint with the effect NoExecute is privileged"))
			continue
		}
		plain.Taints = append(plain.Taints, t)
	}
	return plain, privileged, errs
}

// PrivilegedKey reports whether a label key has a prefix that Privileged names, or one below.
func PrivilegedKey(key string) bool {
	return isOf(key, "node-role.kubernetes.io", corev1.LabelNamespaceNodeRestriction)
}

// RestrictedKey reports whether the API server keeps kubelets from writing labels of this prefix to
// their Nodes (NodeRestriction). It lets them write a few well-known ones, which count all the
// same.
func RestrictedKey(key string) bool { return isOf(key, "kubernetes.io", "k8s.io") }

// isOf reports whether the prefix of a label key is one of the domains or below one.
func isOf(key string, domains ...string) bool {
	prefix, _, found := strings.Cut(key, "/")
	return found && slices.ContainsFunc(domains, func(domain string) bool {
		return prefix == domain || strings.HasSuffix(prefix, "."+domain)
	})
}

func wrong(path *field.Path, key, value string) *field.Error {
	if said := validation.IsQualifiedName(key); len(said) > 0 {
		return field.Invalid(path, key, "the key cannot be used: "+strings.Join(said, "; "))
	}
	if said := validation.IsValidLabelValue(value); len(said) > 0 {
		return field.Invalid(path.Key(key), value, "the value cannot be used: "+strings.Join(said, "; "))
	}
	return nil
}

func (t Taint) wrong(path *field.Path, before []Taint) *field.Error {
	effects := []string{string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute)}
	if !slices.Contains(effects, t.Effect) {
		return field.NotSupported(path.Child("effect"), t.Effect, effects)
	}
	if slices.ContainsFunc(before, func(b Taint) bool { return b.Key == t.Key && b.Effect == t.Effect }) {
		return field.Duplicate(path, t.Key+":"+t.Effect)
	}
	return wrong(path, t.Key, t.Value)
}

// Compile returns a function that reports whether the selector selects an object with these
// labels and annotations. Its error says what is wrong with the expressions.
func (s *Selector) Compile() (func(labels, annotations map[string]string) bool, error) {
	if s.Empty() {
		return func(_, _ map[string]string) bool { return false }, nil
	}
	byLabels, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{
		MatchLabels: s.MatchLabels, MatchExpressions: s.MatchExpressions,
	})
	if err != nil {
		return nil, fmt.Errorf("reading spec.selector: %w", err)
	}
	return func(has, annotations map[string]string) bool {
		for key, value := range s.Annotations {
			if got, found := annotations[key]; !found || got != value {
				return false
			}
		}
		return byLabels.Matches(labels.Set(has))
	}, nil
}
