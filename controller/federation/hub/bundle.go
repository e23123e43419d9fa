package hub

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/archive"
	"gridproxy/controller/federation/hub/plan"
	"gridproxy/topology/excerpt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The reasons why Grids are not sent.
const (
	reasonTooLarge = "BundleTooLarge"
	reasonRefused  = "BundleRefused"
)

// sending is one bundle to write, or to delete, for one cluster.
type sending struct {
	to     *target
	name   string
	packed *packed // nil: it is deleted
}

// packed is a bundle that is packed once for all clusters that get the same.
type packed struct {
	plan.Bundle
	once   sync.Once
	left   atomic.Int32 // clusters that still need it
	text   string       // the archive in base64
	digest string
	// unfit is why there is no archive that a GridBundle can hold.
	unfit *v1alpha1.Problem
}

// unfit says why bundles cannot be packed, so that it is not tried again at each decision.
type unfit map[content]*v1alpha1.Problem

// content is the name and the revision of a bundle, by which equal ones are known.
type content struct{ name, revision string }

// sendings returns the bundles to write, whose Grids all have their finalizers, and those to
// delete. Equal ones follow each other, so that few archives are in memory at the same time.
// The bundles that cannot be written yet are noted as unsent in their targets.
func (e *execution) sendings(targets []*target) []*sending {
	equal, still := map[content]*packed{}, unfit{}
	var all []*sending
	for _, t := range targets {
		for _, name := range slices.Concat(slices.Sorted(maps.Keys(t.plan.Write)), t.plan.Remove) {
			b, written := t.plan.Write[name]
			key := content{name, b.Revision}
			why, unguarded := e.unguarded[name]
			switch {
			case t.failed:
				t.fail(name, nil)
			case !written:
				all = append(all, &sending{to: t, name: name})
			case unguarded:
				t.fail(name, why)
			case e.unfit[key] != nil:
				still[key] = e.unfit[key]
				t.fail(name, still[key])
			default:
				if equal[key] == nil {
					equal[key] = &packed{Bundle: b}
				}
				equal[key].left.Add(1)
				all = append(all, &sending{to: t, name: name, packed: equal[key]})
			}
		}
	}
	e.unfit = still
	slices.SortStableFunc(all, func(a, b *sending) int { return strings.Compare(a.name, b.name) })
	return all
}

func (e *execution) send(ctx context.Context, s *sending) error {
	namespace := v1alpha1.NamespacePrefix + s.to.plan.Name
	if s.packed == nil {
		b := newMetadata(metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "GridBundle"}, namespace, s.name)
		if err := client.IgnoreNotFound(e.client.Delete(ctx, b)); err != nil {
			s.to.fail(s.name, refusal(err))
			return fmt.Errorf("deleting GridBundle %s/%s: %w", namespace, s.name, err)
		}
		e.written.delete(e.bundles[client.ObjectKeyFromObject(b)], e.now())
		log.FromContext(ctx).Info("deleted", "gridBundle", namespace+"/"+s.name)
		return nil
	}
	defer s.packed.used()
	if why := s.packed.pack(s.name); why != nil {
		s.to.fail(s.name, why)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.unfit[content{s.name, s.packed.Revision}] = why
		return nil
	}
	o := s.packed.object(s)
	if err := e.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(Manager), client.ForceOwnership); err != nil {
		s.to.fail(s.name, refusal(err))
		return e.tolerate(err, "writing GridBundle %s/%s", namespace, s.name) // its namespace may be gone
	}
	e.written.apply(o, e.now())
	log.FromContext(ctx).Info("written", "gridBundle", namespace+"/"+s.name, "grids", s.packed.Grids, "revision", s.packed.Revision)
	return nil
}

// pack packs the objects into p, once, and returns why no GridBundle can hold them, or nil.
func (p *packed) pack(namespace string) *v1alpha1.Problem {
	p.once.Do(func() {
		raw, err := archive.Pack(p.Objects)
		switch {
		case err != nil:
			p.unfit = problem(reasonTooLarge, "the Grids of namespace %s cannot be packed, so the cluster keeps what it has: %s", namespace, err)
		case len(raw) > v1alpha1.MaxBundle:
			p.unfit = problem(reasonTooLarge, "the Grids of namespace %s for this cluster have %d bytes packed, more than %d, so the cluster keeps "+
				"what it has: distribute them over several namespaces, or make their templates smaller", namespace, len(raw), v1alpha1.MaxBundle)
		default:
			p.text, p.digest = base64.StdEncoding.EncodeToString(raw), archive.Digest(raw)
		}
	})
	return p.unfit
}

// used notes that one cluster less needs the archive, and lets it go after the last one.
func (p *packed) used() {
	if p.left.Add(-1) == 0 {
		p.text = ""
	}
}

func (p *packed) object(s *sending) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"grids": int64(p.Grids), "digest": p.digest, "archive": p.text,
	}}}
	o.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("GridBundle"))
	o.SetNamespace(v1alpha1.NamespacePrefix + s.to.plan.Name)
	o.SetName(s.name)
	o.SetLabels(map[string]string{v1alpha1.LabelCluster: s.to.plan.Name})
	o.SetAnnotations(map[string]string{v1alpha1.AnnotationRevision: p.Revision})
	return o
}

// problem returns a Problem with a message of bounded length.
func problem(reason, format string, args ...any) *v1alpha1.Problem {
	return &v1alpha1.Problem{Reason: reason, Message: excerpt.Fit(fmt.Sprintf(format, args...), v1alpha1.MaxMessage)}
}
