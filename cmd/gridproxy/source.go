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
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/controller/gridspec"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"
	"gridproxy/topology/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// snapshot returns the saved state, or what readSnapshot reads, whose warnings it prints.
func (in *inputs) snapshot(ctx context.Context, stdin io.Reader) (topology.Snapshot, error) {
	if in.saved != nil {
		return in.savedSnapshot(), nil
	}
	s, warnings, err := readSnapshot(ctx, in.Options, stdin, in.stderr)
	for _, w := range warnings {
		in.warn(w)
	}
	return s, err
}

// allNodes returns a Snapshot of no node in particular, with the labels of all Nodes. A source
// without Nodes is an error.
func (in *inputs) allNodes(ctx context.Context, stdin io.Reader) (topology.Snapshot, error) {
	in.NodeName = ""
	s, err := in.snapshot(ctx, stdin)
	if err == nil && len(s.Nodes) == 0 {
		err = errors.New("the source has no Node, so that there is no unit; give the manifests of the Nodes too")
	}
	return s, err
}

// readSnapshot reads the whole source once. The addresses of the machine are those of its Node
// object. Without a node name all Nodes are read, and Self is nil. If reading takes long, a line in
// problems says so.
func readSnapshot(ctx context.Context, o options.Options, in io.Reader, problems io.Writer) (s topology.Snapshot, warnings []string, err error) {
	s, _, warnings, err = readSource(ctx, o, in, problems)
	return s, warnings, err
}

// readSource reads as readSnapshot does, and returns the objects of further kinds in manifests
// too. A warning for each other kind says how many objects are skipped.
func readSource(ctx context.Context, o options.Options, in io.Reader, problems io.Writer, further ...schema.GroupVersionKind) (s topology.Snapshot, raw []manifest.Raw, warnings []string, err error) {
	defer command.Waiting(problems, waitingFor(o))()
	if len(o.Manifests) > 0 {
		var contents manifest.Contents
		read := func() (manifest.Contents, []string, error) { return manifest.ReadWith(o.Manifests, in, further...) }
		if o.Names {
			read = func() (manifest.Contents, []string, error) { return manifest.ReadWithNames(o.Manifests, in) }
		}
		if contents, warnings, err = read(); err == nil {
			s, raw = contents.Snapshot(o.NodeName), contents.Further
			warnings = append(warnings, skipped(contents.Skipped)...)
		}
	} else {
		s, err = listCluster(ctx, o)
	}
	s.Host = topology.HostOfNode(s.Self)
	return s, raw, warnings, err
}

// waitingFor returns what a command waits for while it reads its source, for a message.
func waitingFor(o options.Options) string {
	if len(o.Manifests) > 0 {
		return "reading the manifests"
	}
	return "reading the cluster"
}

// listCluster reads everything once.
func listCluster(ctx context.Context, o options.Options) (topology.Snapshot, error) {
	l, err := openListing(ctx, o, true)
	if err != nil {
		return topology.Snapshot{}, err
	}
	defer l.close()
	return l.snapshot()
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
