package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/archive"
	"gridproxy/controller/removal"
	"gridproxy/topology/excerpt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Read returns a Grid of the hub from the object that a dynamic client has read. hub is the UID
// of the hub's Namespace kube-system.
func Read(hub string, o *unstructured.Unstructured) Grid {
	g := Known(o.GetKind(), o)
	g.Content = contentOf(hub, o)
	return g
}

// Known returns a Grid of the hub without its Content.
func Known(kind string, o metav1.Object) Grid {
	g := Grid{
		Ref:       Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID())},
		Finalizer: slices.Contains(o.GetFinalizers(), v1alpha1.Finalizer),
	}
	if at := o.GetDeletionTimestamp(); at != nil {
		g.Deleting, g.DeletedAt = true, at.Time
	}
	return g
}

// contentOf reads what is sent of a Grid. One without the label is sent to where it was, until it
// leaves.
func contentOf(hub string, o *unstructured.Unstructured) Content {
	c := Content{Wanted: isWanted(o), TargetNamespace: o.GetNamespace()}
	c.readRemoval(o.GetAnnotations())
	if c.Wanted {
		c.readPlaces(hub, o)
	}
	if c.Fault == "" {
		c.Object, c.Revision, c.Fault = copyOf(hub, o, c.TargetNamespace)
	}
	if c.Fault == "" {
		c.Weight = archive.Weight(c.Object)
	}
	return c
}

// readRemoval reads how the Grid leaves clusters. What cannot be read allows nothing.
func (c *Content) readRemoval(annotations map[string]string) {
	if text, found := annotations[v1.AnnotationRemovalGrace]; found {
		grace, err := removal.ParseGrace(text)
		if err != nil {
			grace = -1
		}
		c.Grace = &grace
	}
	if text, found := annotations[v1.AnnotationRemovalBudget]; found {
		budget, _ := removal.ParseBudget(text) // none if it cannot be read
		c.Budget = &budget
	}
	c.Releases = removal.ReadReleases(annotations[v1.AnnotationAllowRemoval])
}

// readPlaces reads to which clusters and where the Grid is sent. What is wrong is in c.Fault.
func (c *Content) readPlaces(hub string, o *unstructured.Unstructured) {
	var faults []string
	if _, back := uidOf(hub, o.GetAnnotations()[v1alpha1.AnnotationFrom]); back {
		faults = append(faults, fmt.Sprintf("its annotation %s says that this cluster itself has sent it, and it would be sent in a circle: remove the label %s, "+
			"or the annotation if the Grid was made here", v1alpha1.AnnotationFrom, v1alpha1.LabelFederated))
	}
	if !slices.Contains(v1.Kinds(), o.GetKind()) {
		faults = append(faults, fmt.Sprintf("%s is not a kind that is distributed", excerpt.Quoted(o.GetKind())))
	}
	text := o.GetAnnotations()[v1alpha1.AnnotationClusters]
	selector, fault := parseSelector(text)
	if fault != "" {
		faults = append(faults, fault)
	} else {
		c.Selector, c.Selects = text, func(of map[string]string) bool { return selector.Matches(labels.Set(of)) }
	}
	if target, set := o.GetAnnotations()[v1alpha1.AnnotationTargetNamespace]; set {
		c.TargetNamespace = target
		if wrong := validation.IsDNS1123Label(target); len(wrong) > 0 {
			faults = append(faults, fmt.Sprintf("annotation %s: %s is not the name of a namespace: set it to the namespace in the clusters, or remove it",
				v1alpha1.AnnotationTargetNamespace, excerpt.Quoted(target)))
		}
	}
	c.Fault = strings.Join(faults, "; ")
}

// at returns the Grid as it is sent to another namespace of a cluster.
func (g *Grid) at(namespace string) *Grid {
	if namespace == g.Content.TargetNamespace {
		return g
	}
	moved := *g
	moved.Content.TargetNamespace = namespace
	if len(g.Content.Object) == 0 {
		return &moved // it is not read before it has its finalizer
	}
	var c struct {
		copied
		Spec json.RawMessage `json:"spec,omitempty"`
	}
	if err := json.Unmarshal(g.Content.Object, &c); err != nil {
		moved.Content.Fault = "it cannot be read: write it again"
		return &moved
	}
	c.copied.Spec, c.Metadata.Namespace = c.Spec, namespace
	delete(c.Metadata.Annotations, v1alpha1.AnnotationRevision)
	moved.Content.Object, moved.Content.Revision, moved.Content.Fault = revised(c.copied)
	return &moved
}

// isWanted reports whether a Grid is to be distributed. One that represents another cluster, as
// SuperEdge made them, is not.
func isWanted(o *unstructured.Unstructured) bool {
	_, represents := o.GetLabels()[v1.LabelDistributed]
	return o.GetLabels()[v1alpha1.LabelFederated] == v1alpha1.Federated && !represents
}

func parseSelector(text string) (labels.Selector, string) {
	if len(text) > selectorMax {
		return nil, fmt.Sprintf("annotation %s has %d bytes, above the bound of %d: shorten the selector",
			v1alpha1.AnnotationClusters, len(text), selectorMax)
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Sprintf("annotation %s: %s is not a label selector: write it as for kubectl get -l, for example region=east (%s)",
			v1alpha1.AnnotationClusters, excerpt.Quoted(text), excerpt.Of(err.Error()))
	}
	if all, _ := selector.Requirements(); len(all) > requirementsMax {
		return nil, fmt.Sprintf("annotation %s has %d requirements, above the bound of %d: shorten the selector",
			v1alpha1.AnnotationClusters, len(all), requirementsMax)
	}
	return selector, ""
}

// copied is a Grid as it is sent. The fields of a type are written in their order, and maps sorted.
type copied struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   copiedMetadata `json:"metadata"`
	Spec       any            `json:"spec,omitempty"`
}

type copiedMetadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// copyOf returns a Grid as it is sent, and its revision, or why it cannot be sent.
func copyOf(hub string, o *unstructured.Unstructured, namespace string) (text []byte, revision, fault string) {
	c := copied{APIVersion: v1.GroupVersion().String(), Kind: o.GetKind(), Spec: o.Object["spec"], Metadata: copiedMetadata{
		Name: o.GetName(), Namespace: namespace, Labels: Kept(o.GetLabels()), Annotations: Kept(o.GetAnnotations()),
	}}
	c.Metadata.Labels[v1alpha1.LabelHub] = hub
	c.Metadata.Annotations[v1alpha1.AnnotationFrom] = hub + "/" + string(o.GetUID())
	return revised(c)
}

// revised returns a Grid as it is sent, with its revision, or why it cannot be sent.
func revised(c copied) (text []byte, revision, fault string) {
	text, err := encode(c)
	if err != nil {
		return nil, "", fmt.Sprintf("its spec cannot be read: write it again (%s)", excerpt.Of(err.Error()))
	}
	sum := sha256.Sum256(text)
	revision = hex.EncodeToString(sum[:8])
	c.Metadata.Annotations[v1alpha1.AnnotationRevision] = revision
	if text, err = encode(c); err != nil || len(text) > objectMax {
		return nil, "", fmt.Sprintf("it has %d bytes, above the bound of %d: move templates to a second Grid, or remove annotations", len(text), objectMax)
	}
	return text, revision, ""
}

// encode writes JSON without the escapes for HTML, which the spec does not have either.
func encode(o any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(o); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// Kept returns, in a new map that is never nil, the labels or annotations that a copy has too:
// all but those about this cluster alone and those of tools that deploy.
func Kept(all map[string]string) map[string]string {
	copies := map[string]string{}
	for key, value := range all {
		if !dropped(key) {
			copies[key] = value
		}
	}
	return copies
}

// droppedKeys returns the keys that are about this cluster alone.
func droppedKeys() []string {
	return []string{
		v1alpha1.LabelFederated, v1alpha1.LabelHub,
		v1alpha1.AnnotationClusters, v1alpha1.AnnotationTargetNamespace,
		"kubectl.kubernetes.io/last-applied-configuration",
		"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", // by these Helm and Argo CD find what is theirs
	}
}

// droppedDomains returns the domains of tools that would take the copy for an object of their
// own and delete it, or that would leave it out or change it when it is applied.
func droppedDomains() []string {
	return []string{
		"argocd.argoproj.io", "helm.sh", "fluxcd.io", "config.kubernetes.io", "config.k8s.io", "kustomize.config.k8s.io",
		"applyset.kubernetes.io", "cli-utils.sigs.k8s.io", "rio.cattle.io",
	}
}

// dropped reports whether a label or annotation of a Grid is not sent.
func dropped(key string) bool {
	if slices.Contains(droppedKeys(), key) || strings.HasPrefix(key, v1alpha1.AnnotationFrom) {
		return true
	}
	domain, _, _ := strings.Cut(key, "/")
	return slices.ContainsFunc(droppedDomains(), func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// Content is what is sent of a Grid.
type Content struct {
	// Object is the Grid as it is applied in a cluster, JSON.
	Object []byte
	// Revision is 16 hexadecimal digits over Object without its annotation AnnotationRevision.
	Revision string
	// TargetNamespace is the namespace in Object.
	TargetNamespace string
	// Selector is AnnotationClusters, if it can be read; equal ones select the same.
	Selector string
	// Selects is AnnotationClusters, parsed; nil: it cannot be read, see Fault.
	Selects func(labels map[string]string) bool
	// Fault is why the Grid cannot be sent as it is.
	Fault string
	// Weight is about how many bytes Object takes in an archive.
	Weight int
	// Wanted is whether it has the label superedge.io/fed: "yes".
	Wanted bool
	// Grace is for how long the Grid stays in a cluster that it is not meant for any more; nil: as
	// long as the flag says; negative: always.
	Grace *time.Duration
	// Budget is from how many clusters it is removed within an hour; nil: as the flag says.
	Budget *removal.Budget
	// Releases are the removals that it allows.
	Releases removal.Releases
}
