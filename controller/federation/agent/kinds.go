package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/federation/agent/delivery"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kinds are what was found out about kinds of Grids: a watch does not say that a user has deleted
// the definition.
type kinds map[string]finding

// finding is whether a kind is missing, and when that was found out.
type finding struct {
	missing bool
	at      time.Time
}

// doubt asks the API server about each kind of which the hub has Grids for the cluster and the
// cluster has none. It adds those that are not served to o.Missing.Kinds, and keeps the answers
// in k for missingKindPeriod.
func (k kinds) doubt(ctx context.Context, live client.Reader, o *delivery.Observed, now time.Time) error {
	doubted := map[string]bool{}
	for _, b := range o.Bundles {
		for _, object := range b.Objects {
			if slices.Contains(v1.Kinds(), object.Kind) {
				doubted[object.Kind] = !o.Missing.Kinds[object.Kind]
			}
		}
	}
	for key := range o.Grids {
		doubted[key.Kind] = false
	}
	for kind, is := range doubted {
		if !is {
			continue
		}
		missing, err := k.missing(ctx, live, kind, now)
		if err != nil {
			return err
		}
		if missing {
			o.Missing.Kinds[kind] = true
		}
	}
	return nil
}

// missing reports whether the API server does not serve a kind. It asks again after
// missingKindPeriod, and keeps the answer in k.
func (k kinds) missing(ctx context.Context, live client.Reader, kind string, now time.Time) (bool, error) {
	if known, found := k[kind]; found && now.Sub(known.at) < missingKindPeriod {
		return known.missing, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1.GroupVersion().WithKind(kind + "List"))
	err := live.List(ctx, list, client.Limit(1))
	if err != nil && !absent(err) {
		return false, fmt.Errorf("asking whether the cluster has the kind %s: %w", kind, err)
	}
	k[kind] = finding{missing: err != nil, at: now}
	return err != nil, nil
}
