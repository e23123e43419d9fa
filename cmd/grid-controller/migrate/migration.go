package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// writer is the field manager of what is written here.
	writer = "grid-controller"
	// applier is the field manager of kubectl apply --server-side, which installs and updates
	// definitions. It becomes the manager of the definition, otherwise its next apply would have
	// conflicts.
	applier = "kubectl"
)

type migration struct {
	client client.Client
	Options
}

var (
	errDeleting = errors.New("it is being deleted, and all its objects with it: wait until it is gone, then install ours with: " +
		"kubectl apply --server-side -f deploy/crds")
	// ErrPutBack says that another process has changed a definition since Run replaced it.
	ErrPutBack = errors.New("another process changed it during the migration: stop SuperEdge's application-grid-controller and site-manager, and run this again")
)

func (m *migration) one(ctx context.Context, ours *apiext.CustomResourceDefinition) error {
	live := &apiext.CustomResourceDefinition{}
	err := m.client.Get(ctx, client.ObjectKeyFromObject(ours), live)
	switch {
	case apierrors.IsNotFound(err):
		m.say(ours.Name, "is not installed; nothing to do")
		return nil
	case err != nil:
		return fmt.Errorf("reading it: %w", err)
	case live.DeletionTimestamp != nil:
		return errDeleting
	}
	stored := slices.Clone(live.Status.StoredVersions)
	if err := m.replace(ctx, live, ours); err != nil {
		return err
	}
	if err := m.giveToApplier(ctx, live); err != nil {
		return err
	}
	if slices.Equal(stored, []string{storageVersion(ours)}) {
		m.say(ours.Name, fmt.Sprintf("its objects are stored as %s already", storageVersion(ours)))
		return nil
	}
	if err := m.rewrite(ctx, live, stored); err != nil {
		return err
	}
	return m.finish(ctx, live)
}

// replace replaces the live spec by ours and keeps the metadata. live becomes the result.
func (m *migration) replace(ctx context.Context, live, ours *apiext.CustomResourceDefinition) error {
	before := live.Generation
	live.Spec = *ours.Spec.DeepCopy() // no conversion: none between versions of the same fields
	options := []client.UpdateOption{client.FieldOwner(writer)}
	if m.DryRun {
		options = append(options, client.DryRunAll)
	}
	if err := m.client.Update(ctx, live, options...); err != nil {
		return fmt.Errorf("replacing its spec by ours: %w", err)
	}
	switch {
	case live.Generation == before:
		m.say(live.Name, "is ours already")
	case m.DryRun:
		m.say(live.Name, "would be replaced by ours")
	default:
		m.say(live.Name, "replaced by ours")
	}
	return nil
}

// giveToApplier makes kubectl apply --server-side the manager of what updates have written:
// ours here, SuperEdge's before. In a dry run it does nothing.
func (m *migration) giveToApplier(ctx context.Context, live *apiext.CustomResourceDefinition) error {
	if m.DryRun {
		return nil
	}
	updaters := sets.New[string]()
	for _, e := range live.ManagedFields {
		if e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == "" {
			updaters.Insert(e.Manager)
		}
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, updaters, applier)
	if err == nil && patch != nil {
		err = m.client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(writer))
	}
	if err != nil {
		return fmt.Errorf("giving it to the field manager of kubectl apply --server-side: %w; run this again", err)
	}
	return nil
}

// finish records in the definition that every object is in the storage version. It returns an
// error with ErrPutBack unless it still is the one under which objects were rewritten.
func (m *migration) finish(ctx context.Context, written *apiext.CustomResourceDefinition) error {
	version := storageVersion(written)
	if m.DryRun {
		m.say(written.Name, fmt.Sprintf("status.storedVersions would become [%s]", version))
		return nil
	}
	live := &apiext.CustomResourceDefinition{}
	err := m.client.Get(ctx, client.ObjectKeyFromObject(written), live)
	if err == nil && (live.UID != written.UID || live.Generation != written.Generation) {
		err = ErrPutBack
	}
	if err != nil {
		return fmt.Errorf("making sure that it is still ours: %w", err)
	}
	live.Status.StoredVersions = []string{version}
	if err := m.client.Status().Update(ctx, live, client.FieldOwner(writer)); err != nil {
		return fmt.Errorf("setting status.storedVersions to [%s]: %w; run this again", version, err)
	}
	m.say(live.Name, fmt.Sprintf("status.storedVersions is [%s] now", version))
	return nil
}

func (m *migration) say(name, what string) { fmt.Fprintf(m.Out, "%s: %s\n", name, what) }
