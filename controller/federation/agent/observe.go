package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/agent/delivery"
	"gridproxy/controller/federation/archive"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sources are the watches of an agent.
type sources struct {
	fleet, bundles         *watch            // at the hub
	grids                  map[string]*watch // in the cluster, by kind
	namespaces             *watch            // in the cluster
	copies                 *watch            // at the engine
	artifacts, kustomizers *watch
}

func newSources(c Config, on toolscache.ResourceEventHandler) sources {
	newWatch := func(from Access, of client.Object) *watch {
		return &watch{cache: from.Cache, object: of, on: on, now: c.Now}
	}
	inTarget := func(of client.Object) *watch {
		w := newWatch(c.Target, of)
		if c.bound != nil {
			w.on = c.bound.count(on)
		}
		return w
	}
	return sources{
		fleet:   newWatch(c.HubAccess, &v1alpha1.FleetCluster{}),
		bundles: newWatch(c.HubAccess, &v1alpha1.GridBundle{}),
		grids: map[string]*watch{
			"DeploymentGrid": inTarget(&v1.DeploymentGrid{}), "StatefulSetGrid": inTarget(&v1.StatefulSetGrid{}), "ServiceGrid": inTarget(&v1.ServiceGrid{}),
		},
		namespaces:  inTarget(namespaceMeta()),
		copies:      newWatch(c.Engine, &v1alpha1.GridBundle{}),
		artifacts:   newWatch(c.Engine, newObject(artifactKind(), "", "")),
		kustomizers: newWatch(c.Engine, newObject(kustomizationKind(), "", "")),
	}
}

// end ends the watches of the cluster, whose cache may be another's.
func (s sources) end() {
	for _, w := range s.grids {
		w.end()
	}
	s.namespaces.end()
}

// observe reads what a decision rests on. The result can be used with an error too: what could
// not be read is nil in it, and stays as it is in the cluster.
func (a *Agent) observe(ctx context.Context) (delivery.Observed, error) {
	o := delivery.Observed{Hub: a.Hub, Accept: a.Accept}
	a.needed = map[string]delivery.Bundle{}
	unread := a.observeEngine(ctx, &o)
	err := a.observeHub(ctx, &o)
	if unread == nil && err == nil {
		a.unpacked = a.needed
	}
	return o, errors.Join(unread, err, a.observeTarget(ctx, &o))
}

// observeHub reads the FleetCluster and the bundles into o. Both stay nil until both are known.
// It returns nil also while a watch has not synced yet.
func (a *Agent) observeHub(ctx context.Context, o *delivery.Observed) error {
	for _, f := range []*watch{a.fleet, a.bundles} {
		if synced, err := f.synced(ctx); !synced {
			return wrap("watching the hub", err)
		}
	}
	fleet := &v1alpha1.FleetCluster{}
	if err := a.HubAccess.Client.Get(ctx, types.NamespacedName{Name: a.Cluster}, fleet); err != nil {
		return fmt.Errorf("reading FleetCluster %s on the hub: %w; everything that is applied stays; if the cluster is to be joined again: "+
			"grid-controller join --cluster %s", a.Cluster, err, a.Cluster)
	}
	var list v1alpha1.GridBundleList
	if err := a.HubAccess.Client.List(ctx, &list, client.InNamespace(v1alpha1.NamespacePrefix+a.Cluster)); err != nil {
		return fmt.Errorf("reading bundles of the hub: %w", err)
	}
	bundles := map[string]delivery.Bundle{}
	for i := range list.Items {
		if b := &list.Items[i]; !strings.Contains(b.Name, ".") {
			bundles[b.Name] = a.unpack(b)
		}
	}
	o.Fleet, o.Bundles = fleet, bundles
	return nil
}

const engineMissing = "Flux is not installed: kubectl apply -k deploy/federation/flux"

// observeEngine reads into o what is applied, and how far Flux is; a.usable: all of it was
// read. It returns nil also while a watch has not synced, and if o says that Flux is missing.
func (a *Agent) observeEngine(ctx context.Context, o *delivery.Observed) error {
	a.usable = false
	if synced, err := a.copies.synced(ctx); !synced {
		return wrap("watching the copies of bundles", err)
	}
	var list v1alpha1.GridBundleList
	if err := a.Engine.Client.List(ctx, &list, client.InNamespace(a.Namespace)); err != nil {
		return fmt.Errorf("reading the copies of bundles: %w", err)
	}
	o.Copies, o.Applied = map[string]delivery.Bundle{}, map[string]delivery.Applied{}
	for i := range list.Items {
		if set, is := strings.CutSuffix(list.Items[i].Name, copyName("")); is {
			o.Copies[set] = a.unpack(&list.Items[i])
		}
	}
	for _, f := range []*watch{a.artifacts, a.kustomizers} {
		synced, err := f.synced(ctx)
		if absent(err) {
			o.EngineMissing = engineMissing
			return nil
		}
		if !synced {
			return wrap("watching the objects of Flux", err)
		}
	}
	var all unstructured.UnstructuredList
	all.SetGroupVersionKind(kustomizationKind())
	err := a.Engine.Client.List(ctx, &all, client.InNamespace(a.Namespace))
	if absent(err) { // a user has deleted the definition, which the watch does not say
		o.EngineMissing = engineMissing
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Kustomizations: %w", err)
	}
	byName := map[string]*unstructured.Unstructured{}
	for i := range all.Items {
		byName[all.Items[i].GetName()] = &all.Items[i]
	}
	for set := range o.Copies {
		if k := byName[fluxName(set)]; k != nil {
			o.Applied[set] = a.progress(ctx, set, k)
		}
	}
	maps.DeleteFunc(a.waits, func(set string, _ waiting) bool { _, found := o.Applied[set]; return !found })
	a.usable = true
	return nil
}

// observeTarget reads into o the UID and Grids of the cluster, and what it lacks. Until all is
// known, it sets o.Bundles to nil: nothing is changed. A watch that has not synced is no error.
func (a *Agent) observeTarget(ctx context.Context, o *delivery.Observed) error {
	uid, err := a.clusterUID(ctx)
	if err != nil {
		o.Bundles = nil // which cluster this is, is not known: nothing is changed
		return err
	}
	o.ClusterUID = uid
	o.Missing.Kinds, o.Missing.Namespaces = map[string]bool{}, map[string]bool{}
	for kind, f := range a.grids {
		synced, err := f.synced(ctx)
		switch {
		case absent(err):
			o.Missing.Kinds[kind] = true
		case !synced:
			o.Bundles = nil // collisions cannot be seen
			return wrap("watching the Grids of the cluster", err)
		}
	}
	err = a.readGrids(ctx, o)
	if err == nil {
		err = a.kinds.doubt(ctx, a.Target.Live, o, a.Now())
	}
	if err == nil {
		err = a.missNamespaces(ctx, o)
	}
	if err != nil {
		o.Bundles = nil
	}
	return err
}

// missNamespaces adds to o.Missing the namespaces of bundles that the cluster does not have. It
// sets o.Bundles to nil while the watch of namespaces has not synced.
func (a *Agent) missNamespaces(ctx context.Context, o *delivery.Observed) error {
	if synced, err := a.namespaces.synced(ctx); !synced {
		o.Bundles = nil
		return wrap("watching the namespaces of the cluster", err)
	}
	known := map[string]bool{"": true}
	for _, b := range o.Bundles {
		for _, object := range b.Objects {
			if known[object.Namespace] {
				continue
			}
			known[object.Namespace] = true
			err := a.Target.Client.Get(ctx, types.NamespacedName{Name: object.Namespace}, namespaceMeta())
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("looking for the namespace %s in the cluster: %w", object.Namespace, err)
			}
			if err != nil {
				o.Missing.Namespaces[object.Namespace] = true
			}
		}
	}
	return nil
}

// readGrids reads into o and a.live the Grids of the kinds that the cluster has.
func (a *Agent) readGrids(ctx context.Context, o *delivery.Observed) error {
	var deployments v1.DeploymentGridList
	var sets v1.StatefulSetGridList
	var services v1.ServiceGridList
	for kind, list := range map[string]client.ObjectList{"DeploymentGrid": &deployments, "StatefulSetGrid": &sets, "ServiceGrid": &services} {
		if o.Missing.Kinds[kind] {
			continue
		}
		if err := a.Target.Client.List(ctx, list); err != nil {
			return fmt.Errorf("reading the %ss of the cluster: %w", kind, err)
		}
	}
	o.Grids, a.live = map[delivery.Key]delivery.Live{}, map[delivery.Key]client.Object{}
	note := func(kind string, g client.Object, observed int64, status v1.WorkloadGridStatus, states map[string]v1.State) {
		key, annotations := delivery.Key{Kind: kind, Namespace: g.GetNamespace(), Name: g.GetName()}, g.GetAnnotations()
		live := delivery.Live{
			From: annotations[v1alpha1.AnnotationFrom], Revision: annotations[v1alpha1.AnnotationRevision],
			Observed: observed == g.GetGeneration(), Status: status, States: states,
		}
		live.Unpruned = unpruned(annotations) || unpruned(g.GetLabels())
		if live.From != "" && g.GetDeletionTimestamp() == nil {
			live.JSON = func() []byte { return asSent(kind, g) }
		}
		o.Grids[key] = live
		a.live[key] = g
	}
	for i := range deployments.Items {
		g := &deployments.Items[i]
		note("DeploymentGrid", g, g.Status.ObservedGeneration, g.Status.WorkloadGridStatus, g.Status.States)
	}
	for i := range sets.Items {
		g := &sets.Items[i]
		note("StatefulSetGrid", g, g.Status.ObservedGeneration, g.Status.WorkloadGridStatus, g.Status.States)
	}
	for i := range services.Items {
		g := &services.Items[i]
		note("ServiceGrid", g, g.Status.ObservedGeneration, v1.WorkloadGridStatus{GridStatus: g.Status.GridStatus}, nil)
	}
	return nil
}

// unpack returns what is in a bundle; Unread says why it cannot be read. Equal bundles are read
// once. What the last round did not need is forgotten.
func (a *Agent) unpack(b *v1alpha1.GridBundle) delivery.Bundle {
	read, known := a.unpacked[b.Spec.Digest]
	if !known {
		read, known = a.needed[b.Spec.Digest]
	}
	if !known {
		read = readBundle(b.Spec)
	}
	if read.Unread == "" {
		a.needed[b.Spec.Digest] = read
	}
	mark := b.Annotations[annotationRemoving]
	read.Removing, read.Stopped = mark != "", mark == removalStopped
	return read
}

func readBundle(spec v1alpha1.GridBundleSpec) delivery.Bundle {
	if got := archive.Digest(spec.Archive); got != spec.Digest {
		return delivery.Bundle{Unread: fmt.Sprintf("its digest is %s, and it says %.80s", got, spec.Digest)}
	}
	files, err := archive.Unpack(spec.Archive)
	if err != nil {
		return delivery.Bundle{Unread: err.Error()}
	}
	var b delivery.Bundle
	for _, file := range files {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(file); err != nil {
			return delivery.Bundle{Unread: err.Error()}
		}
		kind := o.GetKind()
		if group := o.GroupVersionKind().Group; group != v1.Group && !(group == "" && kind == "Namespace") {
			kind = o.GetAPIVersion() + " " + kind
		}
		b.Objects = append(b.Objects, delivery.Object{
			Key:  delivery.Key{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()},
			From: o.GetAnnotations()[v1alpha1.AnnotationFrom], Revision: o.GetAnnotations()[v1alpha1.AnnotationRevision], JSON: file,
		})
	}
	return b
}

// clusterUID returns the UID of the cluster's Namespace kube-system. It is read live, and kept
// for heartbeatPeriod, or missingKindPeriod if a kubeconfig names the cluster.
func (a *Agent) clusterUID(ctx context.Context) (string, error) {
	fresh := heartbeatPeriod
	if a.KubeConfig != nil {
		fresh = missingKindPeriod // behind an address of another cluster another one may answer
	}
	if a.beat.clusterUID != "" && a.Now().Sub(a.beat.uidRead) < fresh {
		return a.beat.clusterUID, nil
	}
	uid, err := ClusterUID(ctx, a.Target.Live)
	if err == nil {
		a.beat.clusterUID, a.beat.uidRead = uid, a.Now()
	}
	return uid, err
}

// ClusterUID returns what tells a cluster from all others: the UID of its Namespace kube-system.
func ClusterUID(ctx context.Context, live client.Reader) (string, error) {
	n, err := readNamespace(ctx, live, metav1.NamespaceSystem)
	if err != nil {
		return "", fmt.Errorf("finding out which cluster this is: %w", err)
	}
	return string(n.UID), nil
}

func readNamespace(ctx context.Context, live client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	n := namespaceMeta()
	err := live.Get(ctx, types.NamespacedName{Name: name}, n)
	return n, err
}

// namespaceMeta returns an empty Namespace to read only its metadata.
func namespaceMeta() *metav1.PartialObjectMetadata {
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return n
}

// absent reports whether err says that the API server does not serve the kind, or lacks the
// object.
func absent(err error) bool {
	return err != nil && (meta.IsNoMatchError(err) || apierrors.IsNotFound(err))
}

// wrap adds to an error what was done. A nil error stays nil.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
