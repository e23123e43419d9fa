// Command superedge gives a NodeUnit its Nodes as a program does that uses SuperEdge's client: it
// reads the whole unit into SuperEdge's type of one version, and writes the whole unit.
//
// This module's go.mod names the version of SuperEdge, whose controller apiserver.EnsureSuperEdge
// builds too, so that what it requires is not required of gridproxy.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/superedge/superedge/pkg/site-manager/generated/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: superedge KUBECONFIG v1alpha1|v1alpha2 NAME [NODE...]")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := write(ctx, os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func write(ctx context.Context, kubeconfig, version, name string, nodes []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	if version == "v1alpha1" {
		units := client.SiteV1alpha1().NodeUnits()
		unit, err := units.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		unit.Spec.Nodes = nodes
		_, err = units.Update(ctx, unit, metav1.UpdateOptions{})
		return err
	}
	units := client.SiteV1alpha2().NodeUnits()
	unit, err := units.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	unit.Spec.Nodes = nodes
	_, err = units.Update(ctx, unit, metav1.UpdateOptions{})
	return err
}
