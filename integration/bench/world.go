package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/program"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// proxy is one of the two programs.
type proxy string

const (
	kubeProxy proxy = "kube-proxy"
	gridproxy proxy = "gridproxy"
)

// The Pods behind all Services run on one node of their own. Before a change the endpoints are the old
// Pods, after it the new ones; what a Pod sends to everybody who connects tells which.
const (
	podsNode = "pods"
	answers  = 9000 // port of the Pods
	oldPod   = byte('A')
	newPod   = byte('B')
)

// world is the lab, the API server in it, and what was made there so far.
type world struct {
	settings
	lab     *netns.Lab
	cluster *apiserver.Cluster
	api     kubernetes.Interface
	binary  string // gridproxy
	dir     string
	vips    []netip.AddrPort // of the Services, in the order of their names
	extra   int              // Services made and removed to measure
	servers []net.Listener
}

// nodeOf is the node that a program runs on with a variant: none ever sees another's rules.
func nodeOf(p proxy, v apiserver.Variant) string {
	return map[proxy]string{kubeProxy: "kp-", gridproxy: "gp-"}[p] + string(v)
}

func layout() netns.Layout {
	var l netns.Layout
	for i, name := range []string{podsNode, "kp-nft", "gp-nft", "kp-legacy", "gp-legacy"} {
		l.Nodes = append(l.Nodes, netns.NodeSpec{
			Name:   name,
			Labels: map[string]string{"kubernetes.io/hostname": name, netns.UnitKey: netns.Beijing},
			Addrs:  []netip.Addr{netip.AddrFrom4([4]byte{192, 168, 10, byte(10 + i)}), netip.MustParseAddr(fmt.Sprintf("fd00:18::%d", i+1))},
			PodCIDRs: []netip.Prefix{
				netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24),
				netip.MustParsePrefix(fmt.Sprintf("fd00:10:%d::/64", i)),
			},
		})
		for _, pod := range podsOn(name) {
			l.Pods = append(l.Pods, netns.PodSpec{Name: pod.name, Node: name, Addrs: []netip.Addr{
				netip.AddrFrom4([4]byte{10, 0, byte(i), pod.host}), netip.MustParseAddr(fmt.Sprintf("fd00:10:%d::%d", i, pod.host)),
			}})
		}
	}
	return l
}

type pod struct {
	name string
	host byte // last part of its address
	says byte
}

func podsOn(node string) []pod {
	if node != podsNode {
		return []pod{{name: netns.ClientOn(node), host: 2}}
	}
	return []pod{{"old-1", 2, oldPod}, {"old-2", 3, oldPod}, {"new-1", 4, newPod}, {"new-2", 5, newPod}}
}

func newWorld(ctx context.Context, s settings) (_ *world, err error) {
	w := &world{settings: s}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	tools, err := apiserver.Ensure(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	if w.dir, err = os.MkdirTemp("", "gridproxy-bench-"); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	say("building gridproxy")
	if w.binary, err = program.Path(ctx, program.Gridproxy); err != nil {
		return nil, err
	}
	if w.lab, err = netns.New(layout()); err != nil {
		return nil, fmt.Errorf("building the namespaces: %w", err)
	}
	if err := w.answer(); err != nil {
		return nil, err
	}
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
	for _, n := range netns.NewManifests(w.dir, layout()).Nodes {
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

// answer starts the Pods' servers: each sends its byte to whoever connects.
func (w *world) answer() error {
	for _, p := range podsOn(podsNode) {
		err := w.lab.Pod(p.name).Do(func() error {
			l, err := net.Listen("tcp", fmt.Sprintf(":%d", answers))
			if err != nil {
				return err
			}
			w.servers = append(w.servers, l)
			go serve(l, p.says)
			return nil
		})
		if err != nil {
			return fmt.Errorf("listening in pod %s: %w", p.name, err)
		}
	}
	return nil
}

func serve(l net.Listener, says byte) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte{says}) // a client that is gone needs no answer
		_ = conn.Close()
	}
}

func (w *world) close() error {
	if w.cluster != nil {
		w.cluster.Close()
	}
	var errs []error
	for _, l := range w.servers {
		errs = append(errs, l.Close())
	}
	if w.lab != nil {
		errs = append(errs, w.lab.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}
