package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/agent/delivery"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// kustomizationKind returns a kind of Flux. Flux's types are modules with dependencies of their
// own, and few fields are needed.
func kustomizationKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
}

func artifactKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "ExternalArtifact"}
}

// The values of a Kustomization's deletionPolicy.
const (
	policyOrphan = "Orphan"
	policyDelete = "Delete"
)

// copyName returns the name of a set's copy. The set is a namespace of the hub, which has no
// dot in its name, so a copy is never taken for a bundle of the hub.
func copyName(set string) string { return set + ".applied" }

// fluxName returns the name of Flux's objects for a set. It becomes the value of a label, so it
// has at most 63 characters.
func fluxName(set string) string {
	name := "grids-" + set
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(set))
	return strings.TrimRight(name[:46], "-") + "-" + hex.EncodeToString(sum[:8])
}

func newObject(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// kustomization returns what makes Flux apply one set; kubeConfig is nil in Flux's own cluster.
// Each time that Flux looks it writes several statuses, so it looks seldom, and when the agent
// asks it to after an edit: see drift. It does not wait until Grids are ready: in a fleet some
// site is always away, and a wait would delay every later change.
func kustomization(namespace, set string, suspend bool, kubeConfig *v1alpha1.KubeConfig) *unstructured.Unstructured {
	spec := map[string]any{
		"interval": "30m0s", "retryInterval": "15s", "timeout": "1m0s",
		"path": "./", "prune": true, "wait": false, "force": false, "suspend": suspend,
		"deletionPolicy": policyOrphan,
		"sourceRef":      map[string]any{"kind": artifactKind().Kind, "name": fluxName(set)},
	}
	if kubeConfig != nil {
		ref := map[string]any{"name": kubeConfig.SecretRef.Name}
		if kubeConfig.SecretRef.Key != "" {
			ref["key"] = kubeConfig.SecretRef.Key
		}
		spec["kubeConfig"] = map[string]any{"secretRef": ref}
	}
	k := newObject(kustomizationKind(), namespace, fluxName(set))
	k.Object["spec"] = spec
	return k
}

// artifactStatus returns an ExternalArtifact whose status says where Flux finds an archive.
func artifactStatus(namespace, set, url, digest string, size int, now time.Time) *unstructured.Unstructured {
	o := newObject(artifactKind(), namespace, fluxName(set))
	at := now.UTC().Format(time.RFC3339)
	o.Object["status"] = map[string]any{
		"artifact": map[string]any{
			"path": namespace + "/" + copyName(set), "url": url, "revision": "grids@" + digest, "digest": digest,
			"size": int64(size), "lastUpdateTime": at,
		},
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Succeeded", "message": "the archive is served", "lastTransitionTime": at,
		}},
	}
	return o
}

func text(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

// inventory returns what Flux has applied of a set, and prunes when it leaves; nil if the
// Kustomization is being deleted, which leaves its objects. An entry is
// namespace_name_group_kind.
func inventory(k *unstructured.Unstructured) map[delivery.Key]bool {
	if k.GetDeletionTimestamp() != nil {
		return nil
	}
	known := map[delivery.Key]bool{}
	entries, _, _ := unstructured.NestedSlice(k.Object, "status", "inventory", "entries")
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		id, _ := entry["id"].(string)
		if parts := strings.Split(id, "_"); len(parts) == 4 {
			known[delivery.Key{Kind: parts[3], Namespace: parts[0], Name: parts[1]}] = true
		}
	}
	return known
}

// unpruned reports whether these annotations or labels keep Flux from removing their object.
func unpruned(of map[string]string) bool {
	const group = "kustomize.toolkit.fluxcd.io/"
	return strings.EqualFold(of[group+"reconcile"], "disabled") || strings.EqualFold(of[group+"prune"], "disabled")
}

// suspended reports whether Flux leaves everything as it is.
func suspended(k *unstructured.Unstructured) bool {
	is, _, _ := unstructured.NestedBool(k.Object, "spec", "suspend")
	return is
}

// failure returns the message of a Kustomization's condition Ready while that is False, else "".
func failure(k *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(k.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Ready" && c["status"] == "False" {
			message, _ := c["message"].(string)
			return message
		}
	}
	return ""
}
