package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/need"
)

// installGroups installs groups of Debian packages where one of their programs is missing.
func installGroups(ctx context.Context, names []string) error {
	for _, name := range names {
		group, err := need.FindGroup(name)
		if err != nil {
			return err
		}
		if err := group.Install(ctx, os.Stdout); err != nil {
			return err
		}
	}
	return nil
}

// groupNames returns the groups that -install knows.
func groupNames() []string {
	var names []string
	for _, g := range need.Groups() {
		names = append(names, g.Name)
	}
	return names
}

// olderTool is not in "all", because it takes as long as control-plane.
const olderTool = "control-plane-1.36"

// toolNames returns the tools that -ensure builds, without olderTool.
func toolNames() []string {
	return []string{"control-plane", "node-runtime", "superedge", "helm", "coredns", "flux"}
}

// ensureTools builds programs that tests start, unless this machine has them already, and prints
// the folder of each; of helm its path. The name all stands for all of toolNames.
func ensureTools(ctx context.Context, names []string, out, progress io.Writer) error {
	if len(names) == 1 && names[0] == "all" {
		names = toolNames()
	}
	for _, name := range names {
		if name != olderTool && !slices.Contains(toolNames(), name) {
			return fmt.Errorf("there is no tool %q: choose from %s, %s, or all", name, strings.Join(toolNames(), ", "), olderTool)
		}
	}
	for _, name := range names {
		path, err := ensureTool(ctx, name, progress)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, path)
	}
	return nil
}

func ensureTool(ctx context.Context, name string, progress io.Writer) (string, error) {
	switch name {
	case "control-plane": // etcd, kube-apiserver, kube-proxy and the rest of Kubernetes
		tools, err := apiserver.Ensure(ctx, progress)
		return tools.Dir, err
	case olderTool: // the same of the release before
		tools, err := apiserver.EnsureVersion(ctx, apiserver.OlderVersion, progress)
		return tools.Dir, err
	case "node-runtime": // containerd, runc and network plugins
		tools, err := apiserver.EnsureNodeRuntime(ctx, progress)
		return tools.Dir, err
	case "superedge": // SuperEdge's application-grid-controller
		superEdge, err := apiserver.EnsureSuperEdge(ctx, progress)
		return superEdge.CRDs(), err
	case "flux": // kustomize-controller and its CRDs
		flux, err := apiserver.EnsureFlux(ctx, progress)
		return flux.CRDs(), err
	case "coredns":
		return apiserver.EnsureCoreDNS(ctx, progress)
	default:
		return apiserver.EnsureHelm(ctx, progress)
	}
}
