package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/program"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

type proxy string

const (
	kubeProxy proxy = "kube-proxy"
	gridproxy proxy = "gridproxy"
)

// world is a stage with an API server, and what was made there so far.
type world struct {
	settings
	*stage
	cluster *apiserver.Cluster
	api     kubernetes.Interface
	binary  string           // gridproxy
	vips    []netip.AddrPort // of the Services, in the order of their names
	extra   int              // Services made and removed to measure
}

// nodeOf is the node that a program runs on with a variant: none ever sees another's rules.
func nodeOf(p proxy, v apiserver.Variant) string {
	return map[proxy]string{kubeProxy: "kp-", gridproxy: "gp-"}[p] + string(v)
}

func newWorld(ctx context.Context, s settings) (_ *world, err error) {
	tools, err := apiserver.Ensure(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	say("building gridproxy")
	binary, err := program.Path(ctx, program.Gridproxy)
	if err != nil {
		return nil, err
	}
	w := &world{settings: s, binary: binary}
	if w.stage, err = newStage("kp-nft", "gp-nft", "kp-legacy", "gp-legacy"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	say("starting etcd and kube-apiserver")
	w.cluster, err = apiserver.Start(ctx, apiserver.Options{
		Tools: tools, Dir: w.dir, Namespace: w.lab.Outside, Addrs: w.lab.Outside.Addrs,
	})
	if err != nil {
		return nil, err
	}
	if w.api, err = kubernetes.NewForConfig(protobuf(w.cluster.Admin())); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return w, w.addNodes(ctx)
}

func (w *world) addNodes(ctx context.Context) error {
	for _, n := range netns.NewManifests(w.dir, w.layout).Nodes {
		made, err := w.api.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("making node %s: %w", n.Name, err)
		}
		made.Status = corev1.NodeStatus{Addresses: n.Status.Addresses}
		if _, err := w.api.CoreV1().Nodes().UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("telling the addresses of node %s: %w", n.Name, err)
		}
	}
	return nil
}

func (w *world) close() error {
	if w.cluster != nil {
		w.cluster.Close()
	}
	return w.stage.close()
}
