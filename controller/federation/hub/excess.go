package hub

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gridproxy/controller/api/v1alpha1"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// excess are the pauses between deletions of reports, by the namespaces of clusters.
type excess map[string]excessPause

type excessPause struct {
	at    time.Time // of the last deletion
	pause time.Duration
}

// delete deletes at most excessMax reports that are too large to be a grid-controller's, with
// pauses for each namespace. It returns after how long more can be deleted; 0: nothing is left.
func (e excess) delete(ctx context.Context, c client.Client, reports []v1alpha1.GridReport, now time.Time) (again time.Duration, err error) {
	left, begun := excessMax, map[string]bool{}
	for i := range reports {
		r := &reports[i]
		p := e[r.Namespace]
		switch _, isLarge := r.Annotations[v1alpha1.AnnotationReportBytes]; {
		case !isLarge || !strings.HasPrefix(r.Namespace, v1alpha1.NamespacePrefix):
			continue
		case left == 0, !begun[r.Namespace] && now.Sub(p.at).Abs() < p.pause:
			again = excessDelay
			continue
		case !begun[r.Namespace]:
			begun[r.Namespace] = true
			e[r.Namespace] = excessPause{now, min(max(2*p.pause, excessDelay), excessDelayMax)}
			log.FromContext(ctx).Info("deleting reports that are larger than any that a grid-controller writes: "+
				"find out what else uses the account of the cluster", "namespace", r.Namespace)
		}
		left--
		err := c.Delete(ctx, r.DeepCopy(), client.Preconditions{UID: &r.UID})
		if err == nil && len(r.Finalizers) > 0 { // whoever wrote them does not remove them
			err = c.Patch(ctx, r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		}
		if client.IgnoreNotFound(err) != nil {
			return excessDelay, fmt.Errorf("deleting GridReport %s/%s, which has more than %d bytes: %w", r.Namespace, r.Name, v1alpha1.MaxReport, err)
		}
	}
	return again, nil
}
