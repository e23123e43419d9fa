package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PageSize is how many objects are asked for at a time.
const PageSize = 500

// rewrite writes every object of a definition, so that it is stored in the storage version. It
// continues if one is refused; the error joins all failures. In a dry run it only prints.
func (m *migration) rewrite(ctx context.Context, d *apiext.CustomResourceDefinition, stored []string) error {
	version := storageVersion(d)
	kind := schema.GroupVersionKind{Group: d.Spec.Group, Version: version, Kind: d.Spec.Names.Kind}
	if m.DryRun { // the definition that can read them is not there
		m.say(d.Name, fmt.Sprintf("its objects, stored as %v, would be rewritten as %s", stored, version))
		return nil
	}
	if err := m.settle(ctx); err != nil {
		return err
	}
	var count int
	var errs []error
	list := &unstructured.UnstructuredList{}
	for {
		next := list.GetContinue()
		list = &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(d.Spec.Names.ListKind))
		page := func() error { return m.client.List(ctx, list, client.Limit(PageSize), client.Continue(next)) }
		if err := persist(page); err != nil {
			errs = append(errs, fmt.Errorf("listing its objects: %w; run this again", err))
			break
		}
		for i := range list.Items {
			if err := m.renew(ctx, &list.Items[i]); err != nil {
				errs = append(errs, fmt.Errorf("rewriting %s as %s: %w", named(&list.Items[i]), version, err))
				continue
			}
			count++
		}
		if list.GetContinue() == "" {
			break
		}
	}
	m.say(d.Name, fmt.Sprintf("%d objects, stored as %v, rewritten as %s", count, stored, version))
	return errors.Join(errs...)
}

// settle waits for m.Pause, in which the API servers begin to use the new definition. One that
// does not use it would store objects as before. It returns an error if ctx ends.
func (m *migration) settle(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("waiting for the API servers to work with it: %w", ctx.Err())
	case <-time.After(m.Pause):
		return nil
	}
}

// renew writes an object unchanged. The API server stores it if its stored form, such as the
// version, differs. An object that is gone is no error.
func (m *migration) renew(ctx context.Context, o *unstructured.Unstructured) error {
	fresh := true
	err := persist(func() error {
		if !fresh {
			if err := m.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
		}
		fresh = false
		return m.client.Update(ctx, o, client.FieldOwner(writer))
	})
	switch {
	case err == nil || apierrors.IsNotFound(err): // who is gone needs no version
		return nil
	case apierrors.IsInvalid(err):
		return fmt.Errorf("%w; repair it with kubectl edit, and run this again", err)
	default:
		return fmt.Errorf("%w; run this again", err)
	}
}

// persist makes a request a few times, while its error may pass. It returns the error of the
// last one: retry.OnError returns nil for a request that ctx interrupted.
func persist(request func() error) (last error) {
	_ = retry.OnError(retry.DefaultBackoff, passing, func() error {
		last = request()
		return last
	})
	return last
}

// passing reports whether the same request may succeed soon: another writer was first, or the API
// server gave no answer, as when the connection was lost, or asked to come back.
func passing(err error) bool {
	answered := apierrors.ReasonForError(err) != metav1.StatusReasonUnknown
	if !answered {
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	return apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}

func named(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
}
