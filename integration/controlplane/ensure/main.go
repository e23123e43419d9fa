// Command ensure builds programs that the integration tests start, unless this machine has them
// already, and prints the folder of each:
//
//	control-plane  etcd, kube-apiserver, kube-proxy and the rest of Kubernetes
//	node-runtime   containerd, runc and network plugins
//	superedge      SuperEdge's application-grid-controller
//	helm           helm (its path, not its folder)
//
// Without arguments it builds all of them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"gridproxy/integration/controlplane"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(names []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	all := []string{"control-plane", "node-runtime", "superedge", "helm"}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("there is no tool %q: choose from %s", name, strings.Join(all, ", "))
		}
	}
	if len(names) == 0 {
		names = all
	}
	for _, name := range names {
		path, err := ensure(ctx, name)
		if err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}

func ensure(ctx context.Context, name string) (string, error) {
	switch name {
	case "control-plane":
		tools, err := controlplane.Ensure(ctx, os.Stderr)
		return tools.Dir, err
	case "node-runtime":
		tools, err := controlplane.EnsureNodeRuntime(ctx, os.Stderr)
		return tools.Dir, err
	case "superedge":
		superEdge, err := controlplane.EnsureSuperEdge(ctx, os.Stderr)
		return superEdge.CRDs(), err
	default:
		return controlplane.EnsureHelm(ctx, os.Stderr)
	}
}
