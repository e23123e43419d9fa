package grid

import (
	"context"
	"fmt"
	"time"

	"gridproxy/controller/grid/expand"
	"gridproxy/controller/gridspec"
	"gridproxy/controller/retry"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// missingService is a Service that a template names and that does not exist.
type missingService struct {
	since    time.Time
	reported bool
}

// checkServices returns an Event for each Service that a StatefulSetGrid has named in vain for the
// grace, once, and after how long to check again; 0: nothing is waited for.
func (r *reconciler) checkServices(ctx context.Context, g expand.Grid, known *remembered) (events []notice, again time.Duration, err error) {
	missing := map[string]missingService{}
	for _, name := range g.ServiceNames() {
		err := r.client.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, &service{})
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			return nil, 0, fmt.Errorf("reading Service %s/%s, which %s %s names: %w", g.Namespace, name, g.Kind, g.Name, err)
		}
		m, found := known.missing[name]
		if !found {
			m.since = r.now()
		}
		if left := m.since.Add(missingServiceGrace).Sub(r.now()); left > 0 {
			again = retry.Earlier(again, left)
		} else if !m.reported {
			mistake := gridspec.WithoutService(name)
			events = append(events, notice{corev1.EventTypeWarning, mistake.Reason, mistake.Wrong + ": " + mistake.Remedy})
			m.reported = true
		}
		missing[name] = m
	}
	known.missing = missing
	return events, again, nil
}
