package topology

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The annotations of a Service that close it.
const (
	// AnnotationKeys holds a JSON list of node label keys, as SuperEdge writes it.
	AnnotationKeys = "topologyKeys"
	// AnnotationPolicy says how several keys combine; absent is PolicyAny.
	AnnotationPolicy = "superedge.io/topology-policy"
	// AnnotationScheduler names the way in which the virtual servers of a Service choose among its
	// endpoints, as ipvsadm(8) names it.
	AnnotationScheduler = "superedge.io/ipvs-scheduler"
	// AnyEndpoint matches every endpoint. It is only valid as the last entry of an Ordered list.
	AnyEndpoint = "*"
)

// Limits of an annotation. Each key costs one comparison for each endpoint at each change.
const (
	// MaxKeys is how many keys the list may have.
	MaxKeys = 16
	// MaxAnnotationBytes bounds the text before it is parsed: 16 keys of the longest kind take 5 KiB.
	// What of a longer one is held does not matter.
	MaxAnnotationBytes = 16 << 10
)

// CarriedKeys returns the label keys for which any of the Nodes has a non-empty value, sorted.
func CarriedKeys(nodes map[string]labels.Set) []string {
	keys := map[string]bool{}
	for _, set := range nodes {
		for key, value := range set {
			if value != "" {
				keys[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// Intersects reports whether two nodes share a unit: some key has the same non-empty value on both.
// An empty value is no unit (in SuperEdge it matched itself, W-13).
func Intersects(keys []string, a, b labels.Set) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return a[key] != "" && a[key] == b[key] })
}

// ParseKeys reads the two annotations of a Service: its keys, each once, and the policy. No
// keys and no error mean an ordinary Service: the annotation is absent or an empty list.
// Everything that is not a list of at most MaxKeys valid label keys, with a valid policy, is an
// error, so that a typing mistake never opens a Service.
func ParseKeys(annotations map[string]string) ([]string, Policy, error) {
	text, found := annotations[AnnotationKeys]
	if !found {
		return nil, PolicyAny, nil
	}
	if len(text) > MaxAnnotationBytes {
		return nil, PolicyAny, fmt.Errorf("annotation %s is too long; write at most %d keys in at most %d bytes", AnnotationKeys, MaxKeys, MaxAnnotationBytes)
	}
	var keys []string
	if err := json.Unmarshal([]byte(text), &keys); err != nil {
		return nil, PolicyAny, fmt.Errorf("annotation %s is %s, not a JSON list of label keys such as [\"zone\"]", AnnotationKeys, excerpt.Quoted(text))
	}
	if keys == nil {
		return nil, PolicyAny, fmt.Errorf("annotation %s is %s; write [] or remove it to open the Service", AnnotationKeys, excerpt.Of(text))
	}
	if len(keys) > MaxKeys {
		return nil, PolicyAny, fmt.Errorf("annotation %s has %d keys; write at most %d", AnnotationKeys, len(keys), MaxKeys)
	}
	policy, err := parsePolicy(annotations)
	if len(keys) == 0 {
		return nil, PolicyAny, nil
	}
	keys = distinct(keys)
	return keys, policy, errors.Join(err, validateKeys(keys, policy))
}

// distinct removes repeated keys, in place. A repeated key has no further meaning.
func distinct(keys []string) []string {
	seen := make(map[string]bool, len(keys))
	return slices.DeleteFunc(keys, func(key string) bool {
		again := seen[key]
		seen[key] = true
		return again
	})
}

func parsePolicy(annotations map[string]string) (Policy, error) {
	text, found := annotations[AnnotationPolicy]
	switch policy := Policy(text); {
	case !found:
		return PolicyAny, nil
	case policy == PolicyAny || policy == PolicyOrdered:
		return policy, nil
	default:
		return PolicyAny, fmt.Errorf("annotation %s is %s, not %s or %s", AnnotationPolicy, excerpt.Quoted(text), PolicyAny, PolicyOrdered)
	}
}

func validateKeys(keys []string, policy Policy) error {
	var errs []error
	for i, key := range keys {
		switch {
		case key == AnyEndpoint && policy != PolicyOrdered:
			errs = append(errs, fmt.Errorf("annotation %s has %q, which needs %s: %s", AnnotationKeys, key, AnnotationPolicy, PolicyOrdered))
		case key == AnyEndpoint && i != len(keys)-1:
			errs = append(errs, fmt.Errorf("annotation %s has %q before its last place", AnnotationKeys, key))
		case key == AnyEndpoint:
		default:
			if msgs := validation.IsQualifiedName(key); len(msgs) > 0 {
				errs = append(errs, fmt.Errorf("annotation %s: %s is not a label key: %s", AnnotationKeys, excerpt.Quoted(key), strings.Join(msgs, "; ")))
			}
		}
	}
	return errors.Join(errs...)
}

// confinement says how a Service is closed, before any endpoint is considered.
type confinement struct {
	keys      []string
	policy    Policy
	malformed string
	ownOnly   bool // only endpoints on this node
}

// confine reads a Service's annotations. If malformed, lastKeys are in force, or ownOnly.
func confine(svc *corev1.Service, lastKeys []string) confinement {
	keys, policy, err := ParseKeys(svc.Annotations)
	if err == nil {
		return confinement{keys: keys, policy: policy}
	}
	policy, _ = parsePolicy(svc.Annotations)
	return confinement{
		keys:      lastKeys,
		policy:    policy,
		malformed: excerpt.Message(strings.ReplaceAll(err.Error(), "\n", "; ")),
		ownOnly:   len(lastKeys) == 0,
	}
}

// MalformedEffect returns a text that says what holds for a Service whose annotations cannot be
// read, for logs, Events and explain. keys are those in force; none = the Service never had
// readable ones here.
func MalformedEffect(keys []string) string {
	if len(keys) == 0 {
		return "until it is corrected, each node uses only its own endpoints"
	}
	return "until it is corrected, the last valid keys stay in force: " + strings.Join(keys, ", ")
}
