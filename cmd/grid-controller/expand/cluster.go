package expand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gridproxy/cmd/command"
	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid"
	"gridproxy/controller/grid/expand"

	"github.com/rogpeppe/go-internal/diff"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clusterTimeout is how long the API server may take for all requests.
const clusterTimeout = 2 * time.Minute

// newcomer is the UID of a Grid that the cluster does not have yet. It is never printed.
const newcomer types.UID = "00000000-0000-0000-0000-000000000000"

// cluster is an API server to which nothing is written.
type cluster struct{ client client.Client }

func connect(kubeconfig string) (cluster, error) {
	var config *rest.Config
	var err error
	if kubeconfig != "" {
		if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
			return cluster{}, fmt.Errorf("reading --kubeconfig %s: %w", kubeconfig, err)
		}
	} else if config, err = rest.InClusterConfig(); err != nil {
		return cluster{}, command.NewUsageError(fmt.Errorf("--kubeconfig is not given, and this is not a Pod of a cluster (%w): say which cluster to compare with", err))
	}
	config.QPS = -1 // one person's question; the API server has its own limits
	config.WarningHandler = rest.NoWarnings{}
	scheme, err := grid.Scheme()
	if err == nil {
		var c client.Client
		if c, err = client.New(config, client.Options{Scheme: scheme}); err == nil {
			return cluster{client.NewDryRunClient(c)}, nil
		}
	}
	return cluster{}, fmt.Errorf("making a client for %s: %w", config.Host, err)
}

// diffAll returns the differences as text; empty = none. warnings names the Grids without
// children. err joins failures, and why units have no child; text is then about the others.
func (c cluster) diffAll(ctx context.Context, in input) (text []byte, warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	var plans []plan
	var errs []error
	for _, g := range in.grids {
		p, err := c.plan(ctx, g, in.nodes)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s/%s: %w", g.Kind, g.Namespace, g.Name, err))
			continue
		}
		if g.Kind != expand.ServiceGrid && len(p.observed.Units) == 0 {
			warnings = append(warnings, fmt.Sprintf("%s %s/%s: no Node has the label %s, so it has no children", g.Kind, g.Namespace, g.Name, g.Key))
		}
		plans = append(plans, p)
	}
	wanted, problems := applies(plans)
	errs = append(errs, problems)
	var out bytes.Buffer
	for _, w := range wanted {
		d, err := c.diffOne(ctx, w)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", w.made, w.object(), err))
			continue
		}
		out.Write(d)
	}
	return out.Bytes(), warnings, errors.Join(errs...)
}

// plan is what the controller would do about one Grid if it started now.
type plan struct {
	observed expand.Observed
	steps    []expand.Step
	live     map[string]*unstructured.Unstructured // the objects that have wanted names
}

func (c cluster) plan(ctx context.Context, g expand.Grid, nodes map[string]labels.Set) (plan, error) {
	var err error
	if g.UID, err = c.uid(ctx, g); err != nil {
		return plan{}, err
	}
	if nodes == nil && g.Kind != expand.ServiceGrid {
		if nodes, err = c.nodes(ctx, g.Key); err != nil {
			return plan{}, err
		}
	}
	p := plan{live: map[string]*unstructured.Unstructured{}, observed: expand.Observed{
		Grid: g, Units: units(nodes, g.Key), Occupants: map[string]*expand.Live{}, Now: time.Now(), Grace: -1,
	}}
	decided := expand.Decide(p.observed)
	for _, name := range decided.Look {
		if err := c.look(ctx, &p, name); err != nil {
			return plan{}, err
		}
	}
	p.steps = expand.Decide(p.observed).Steps
	return p, nil
}

// uid returns the UID of the Grid in the cluster, or newcomer if the cluster does not have the
// Grid.
func (c cluster) uid(ctx context.Context, g expand.Grid) (types.UID, error) {
	var live metav1.PartialObjectMetadata
	live.SetGroupVersionKind(v1.GroupVersion().WithKind(string(g.Kind)))
	err := c.client.Get(ctx, types.NamespacedName{Namespace: g.Namespace, Name: g.Name}, &live)
	if apierrors.IsNotFound(err) { // the Grid, or its CRD
		return newcomer, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading it from the cluster: %w", err)
	}
	return live.UID, nil
}

func (c cluster) nodes(ctx context.Context, key string) (map[string]labels.Set, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NodeList"})
	if err := c.client.List(ctx, &list, client.HasLabels{key}); err != nil {
		return nil, fmt.Errorf("listing the Nodes with label %s: %w", key, err)
	}
	nodes := map[string]labels.Set{}
	for _, n := range list.Items {
		nodes[n.Name] = n.Labels
	}
	return nodes, nil
}

// look reads the object with a wanted name into p. It enters nil if the object does not exist.
func (c cluster) look(ctx context.Context, p *plan, name string) error {
	p.observed.Occupants[name] = nil
	kind := p.observed.Grid.Kind.Child()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	err := c.client.Get(ctx, types.NamespacedName{Namespace: p.observed.Grid.Namespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	withoutFingerprint(o)
	typed, err := c.client.Scheme().New(kind)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed)
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	l, err := grid.ReadLive(typed.(client.Object))
	if err != nil {
		return err
	}
	p.observed.Occupants[name], p.live[name] = &l, o
	return nil
}

// withoutFingerprint removes the label with which the controller marks what it has applied.
// Then an apply of every child is planned, and the API server says what it would change; the
// label is not among the changes.
func withoutFingerprint(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "metadata", "labels", v1.LabelFingerprint)
}

type wanted struct {
	made
	step expand.Apply
	live *unstructured.Unstructured // nil: it would be made
}

// applies returns the applies of all plans, sorted. The error joins why units have none.
func applies(plans []plan) ([]wanted, error) {
	steps := map[string]wanted{} // by Grid and unit
	var all []made
	for _, p := range plans {
		for _, s := range p.steps {
			if a, ok := s.(expand.Apply); ok {
				w := wanted{made{p.observed.Grid, a.Child}, a, p.live[a.Child.Name]}
				steps[w.String()] = w
			}
		}
		for _, child := range expand.Children(p.observed.Grid, slices.Collect(maps.Keys(p.observed.Units)), p.observed.Occupants) {
			m := made{p.observed.Grid, child}
			if _, found := steps[m.String()]; !found && child.Problem == nil {
				m.child.Problem = p.obstacle(child)
			}
			all = append(all, m)
		}
	}
	slices.SortFunc(all, compareMade)
	kept, err := sound(all)
	sorted := make([]wanted, 0, len(kept))
	for _, m := range kept {
		sorted = append(sorted, steps[m.String()])
	}
	return sorted, err
}

// obstacle returns why a child would not be applied although it has a template: the message of
// its row in the status, or of the condition of a ServiceGrid, which has no rows.
func (p plan) obstacle(child expand.Child) *expand.Problem {
	if p.observed.Grid.Kind == expand.ServiceGrid {
		for _, condition := range expand.ServiceStatus(p.observed).Conditions {
			if condition.Type == v1.ConditionReady {
				return &expand.Problem{Reason: condition.Reason, Message: condition.Message}
			}
		}
	}
	for _, row := range expand.Status(p.observed).Units {
		if row.Value == child.Value && row.Message != "" {
			return &expand.Problem{Reason: row.Reason, Message: row.Message}
		}
	}
	return &expand.Problem{Message: fmt.Sprintf("%s %s is not applied now: it is being deleted", p.observed.Grid.Kind.Child().Kind, child.Name)}
}

// diffOne returns what an apply would change, as a unified diff; empty if nothing. A new object
// is shown as it is requested, because the API server fills in the other fields, such as a
// Service's address, differently in each dry run.
func (c cluster) diffOne(ctx context.Context, w wanted) ([]byte, error) {
	asked := w.child.Object.DeepCopy()
	asked.SetUID(w.step.UID)
	if w.step.HandOver != nil { // another field manager holds them then
		if err := unstructured.SetNestedField(asked.Object, int64(*w.step.HandOver), "spec", "replicas"); err != nil {
			return nil, err
		}
	}
	asked, err := c.answer(ctx, w, asked)
	if err != nil {
		return nil, fmt.Errorf("the API server would refuse it: %w", err)
	}
	withoutFingerprint(asked)
	var before []byte
	after, err := asYAML(asked)
	if w.live == nil {
		after, err = asYAML(w.child.Object)
	} else if err == nil {
		before, err = asYAML(w.live)
	}
	if err != nil {
		return nil, err
	}
	// The first line, "diff old new", is for the names of files.
	_, text, _ := bytes.Cut(diff.Diff("live "+w.object(), before, "wanted "+w.object(), after), []byte("\n"))
	return text, nil
}

// answer returns the API server's result of an apply of asked, which it may change, in a dry
// run. SuperEdge's label stays if nothing else changes in the template.
func (c cluster) answer(ctx context.Context, w wanted, asked *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	options := []client.ApplyOption{client.FieldOwner(grid.Manager)}
	if w.step.UID != "" {
		options = append(options, client.ForceOwnership)
	}
	if w.step.TemplateHash != "" {
		kept := expand.WithTemplateHash(asked, w.step.TemplateHash)
		if err := c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(kept), options...); err != nil || expand.SameTemplate(w.live, kept) {
			return kept, err
		}
	}
	return asked, c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(asked), options...)
}
