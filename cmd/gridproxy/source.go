package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"gridproxy/cmd/command"
	"gridproxy/controller/gridspec"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"
	"gridproxy/topology/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// snapshot returns the saved state or, without one, what readSource reads. The addresses of the
// machine are those of its Node object.
func (in *inputs) snapshot(ctx context.Context, stdin io.Reader) (s topology.Snapshot, err error) {
	if in.saved != nil {
		s = *in.saved
	} else if s, _, err = in.readSource(ctx, stdin); err != nil {
		return s, err
	}
	s.Host = topology.HostOfNode(s.Self)
	return s, nil
}

// allNodes returns a Snapshot of no node in particular, with the labels of all Nodes, and
// clears in.NodeName. A source without Nodes is an error.
func (in *inputs) allNodes(ctx context.Context, stdin io.Reader) (topology.Snapshot, error) {
	in.NodeName = ""
	s, err := in.snapshot(ctx, stdin)
	if err == nil && len(s.Nodes) == 0 {
		err = errors.New("the source has no Node, so that there is no unit; give the manifests of the Nodes too")
	}
	return s, err
}

// readSource reads the whole source once, and prints its warnings. Without a node name all
// Nodes are read, and Self is nil. It also returns the objects of further kinds in manifests.
// If reading takes long, a line on standard error says so.
func (in *inputs) readSource(ctx context.Context, stdin io.Reader, further ...schema.GroupVersionKind) (topology.Snapshot, []manifest.Raw, error) {
	if len(in.Manifests) == 0 {
		defer command.Waiting(in.stderr, "reading the cluster")()
		l, err := openListing(ctx, in.Options, true)
		if err != nil {
			return topology.Snapshot{}, nil, err
		}
		defer l.close()
		s, err := l.snapshot()
		return s, nil, err
	}
	read := func() (manifest.Contents, []string, error) { return manifest.ReadWith(in.Manifests, stdin, further...) }
	if in.Names {
		read = func() (manifest.Contents, []string, error) { return manifest.ReadWithNames(in.Manifests, stdin) }
	}
	done := command.Waiting(in.stderr, "reading the manifests")
	contents, warnings, err := read()
	done()
	in.warnAll(warnings)
	if err != nil {
		return topology.Snapshot{}, nil, err
	}
	in.warnAll(skipped(contents.Skipped))
	return contents.Snapshot(in.NodeName), contents.Further, nil
}

// skipped returns a line for each kind of object in manifests that a command does not use, and
// one line for all beyond skippedKindsMax kinds. It is pure.
func skipped(counts map[schema.GroupKind]int) []string {
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group))
	})
	var lines []string
	for _, k := range kinds[:min(len(kinds), skippedKindsMax)] {
		why := "gridproxy does not use this kind"
		if k.String() == "Endpoints" {
			why = "gridproxy reads EndpointSlices; write an EndpointSlice"
		}
		if slices.ContainsFunc(gridspec.Kinds(), func(grid gridspec.Kind) bool { return grid.GroupVersionKind().GroupKind() == k }) {
			why = "see gridproxy analyze and grid-controller expand"
		}
		objects := "objects"
		if counts[k] == 1 {
			objects = "object"
		}
		lines = append(lines, fmt.Sprintf("%d %s of kind %s skipped: %s", counts[k], objects, excerpt.Of(k.String()), why))
	}
	if more := len(kinds) - skippedKindsMax; more > 0 {
		lines = append(lines, fmt.Sprintf("objects of %d other kinds skipped", more))
	}
	return lines
}
