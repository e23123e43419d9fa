// Command ensure builds the control plane of the integration tests (etcd, kube-apiserver, kube-proxy
// and the rest), the container runtime of its machines and SuperEdge's controller unless this machine has
// them already, and prints the folder that holds the control plane.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"gridproxy/integration/controlplane"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	tools, err := controlplane.Ensure(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := controlplane.EnsureNodeRuntime(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := controlplane.EnsureSuperEdge(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := controlplane.EnsureHelm(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(tools.Dir)
	return 0
}
