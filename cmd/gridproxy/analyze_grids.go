package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"

	"gridproxy/cmd/gridproxy/apiserver"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/inspect/clusterlist"
	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/gridspec"
	"gridproxy/topology"
	"gridproxy/topology/manifest"
	"gridproxy/topology/watch"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// withGrids returns the Snapshot and the Grids of the source, and prints the warnings. If a
// namespace is given, it reads only the Grids there from a cluster.
func (in *inputs) withGrids(ctx context.Context, stdin io.Reader, namespace string) (s topology.Snapshot, grids []gridspec.Grid, err error) {
	var kinds []schema.GroupVersionKind
	for _, k := range gridspec.Kinds() {
		kinds = append(kinds, k.GroupVersionKind())
	}
	s, raw, err := in.readSource(ctx, stdin, kinds...)
	s.Host = topology.HostOfNode(s.Self)
	switch {
	case err != nil:
	case len(in.Manifests) > 0:
		grids, err = gridsIn(raw)
	default:
		var denied string
		grids, denied, err = gridsOf(ctx, in.Options, namespace)
		if denied != "" {
			in.warn(denied)
		}
	}
	return s, grids, err
}

func gridsIn(all []manifest.Raw) ([]gridspec.Grid, error) {
	var grids []gridspec.Grid
	for _, raw := range all {
		g, err := gridspec.ReadGrid(gridspec.Kind(raw.Kind), raw.Decode)
		switch {
		case err != nil:
			return nil, err
		case g.Name == "":
			return nil, fmt.Errorf("%s: metadata.name: is missing; write one", raw.Place)
		}
		g.Namespace = cmp.Or(g.Namespace, metav1.NamespaceDefault)
		grids = append(grids, g)
	}
	return grids, nil
}

// gridsOf returns the Grids of a cluster in a namespace, "" = in all. If the right to list some
// kinds is missing, denied is a line that says so, and the others are listed.
func gridsOf(ctx context.Context, o options.Options, namespace string) (grids []gridspec.Grid, denied string, err error) {
	config, err := apiserver.RestConfig(o, slog.New(slog.DiscardHandler)) // the first problem is the error
	if err != nil {
		return nil, "", err
	}
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, "", fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	scheme, err := watch.Scheme()
	if err != nil {
		return nil, "", fmt.Errorf("making a client for Grids: %w", err)
	}
	client, err := watch.ForGroup(config, shared, scheme, v1.GroupVersion())
	if err != nil {
		return nil, "", fmt.Errorf("making a client for Grids at %s: %w", config.Host, err)
	}
	return clusterlist.GridServer{Client: client, Address: config.Host}.Grids(ctx, namespace)
}
