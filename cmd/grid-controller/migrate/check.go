package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Check is whether the controllers can work with the definitions that a cluster has.
type Check struct{ reader client.Reader }

// NewCheck returns a Check of the cluster of a configuration. It sends no request yet.
func NewCheck(config *rest.Config) (Check, error) {
	c, err := NewClient(config)
	return Check{c}, err
}

// Unfit returns an error that names every definition of these resources of an API group that is
// SuperEdge's, and how to replace it; nil if all are ours. Missing definitions are ignored.
// Without the right to get definitions by name, apierrors.IsForbidden is true for the error.
func (c Check) Unfit(ctx context.Context, group string, resources []string) error {
	ours, err := Definitions()
	if err != nil {
		return err
	}
	var faults []string
	for i := range ours {
		if ours[i].Spec.Group != group || !slices.Contains(resources, ours[i].Spec.Names.Plural) {
			continue
		}
		var live apiext.CustomResourceDefinition
		err := c.reader.Get(ctx, client.ObjectKeyFromObject(&ours[i]), &live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading CustomResourceDefinition %s: %w", ours[i].Name, err)
		}
		if fault := unfit(&live, &ours[i]); fault != "" {
			faults = append(faults, fmt.Sprintf("CustomResourceDefinition %s is not ours: %s", live.Name, fault))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return errors.New(strings.Join(faults, "; ") + "; stop SuperEdge's controllers and replace it with: " + Command)
}

// unfit returns why the controllers cannot work with a live definition, such as SuperEdge's; ""
// if they can.
func unfit(live, ours *apiext.CustomResourceDefinition) string {
	var faults []string
	if is, want := storageVersion(live), storageVersion(ours); is != want {
		faults = append(faults, fmt.Sprintf("its objects are stored as %s and not as %s", is, want))
	}
	for _, v := range live.Spec.Versions {
		if v.Served && (v.Subresources == nil || v.Subresources.Status == nil) {
			faults = append(faults, fmt.Sprintf("version %s has no status subresource, so no status can be written", v.Name))
		}
	}
	if c := live.Spec.Conversion; c != nil && c.Strategy == apiext.WebhookConverter {
		faults = append(faults, "a webhook converts its versions, without which nothing can be read")
	}
	return strings.Join(faults, ", and ")
}
