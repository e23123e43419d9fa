package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Lab is a running cluster of namespaces. Close it.
type Lab struct {
	// Outside is a client that is neither a node nor a Pod. It is also the nodes' default gateway,
	// with no route further on: what leaves a node for an unused address comes back as "unreachable"
	// instead of getting lost.
	Outside *Namespace

	nodes  []*Node
	pods   []*Pod
	fabric *Namespace
	spawn  *spawner
	open   []io.Closer // servers and lock files
}

// Node is a machine of the cluster.
type Node struct {
	*Namespace
	Spec NodeSpec

	mac  mac
	veth int // how many Pods have been attached
}

// Pod is a Pod of the cluster.
type Pod struct {
	*Namespace
	Spec PodSpec
	Node *Node
}

// linkDeadline is by when every link must be up. The kernel's link watch may take a second
// under load.
const linkDeadline = 20 * time.Second

// New builds the cluster and returns once packets can flow: every link is up and every
// echo server listens.
func New(layout Layout) (_ *Lab, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("network namespaces need root: run this as root")
	}
	l := &Lab{spawn: newSpawner()}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if err := l.buildFabric(); err != nil {
		return nil, err
	}
	for _, spec := range layout.Nodes {
		if err := l.addNode(spec); err != nil {
			return nil, fmt.Errorf("building node %s: %w", spec.Name, err)
		}
	}
	if err := l.connectNodes(); err != nil {
		return nil, err
	}
	for _, spec := range layout.Pods {
		if err := l.addPod(spec); err != nil {
			return nil, fmt.Errorf("building pod %s: %w", spec.Name, err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), linkDeadline,
		fmt.Errorf("links still down after %s", linkDeadline))
	defer cancel()
	return l, l.waitForLinks(ctx)
}

// Close ends every program of the lab and removes all that was made.
func (l *Lab) Close() error {
	l.spawn.close()
	var errs []error
	for _, s := range l.open {
		errs = append(errs, s.Close())
	}
	for _, n := range l.namespaces() {
		errs = append(errs, n.close())
	}
	return errors.Join(errs...)
}

// Nodes are the nodes in the layout's order.
func (l *Lab) Nodes() []*Node { return l.nodes }

// Node is a node by name; nil if the layout has none of that name.
func (l *Lab) Node(name string) *Node {
	return find(l.nodes, func(n *Node) bool { return n.Name == name })
}

// find returns the first element for which is returns true, or nil.
func find[T any](all []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i]
	}
	return nil
}

// Pods are the Pods in the layout's order.
func (l *Lab) Pods() []*Pod { return l.pods }

// Pod is a Pod by name; nil if the layout has none of that name.
func (l *Lab) Pod(name string) *Pod {
	return find(l.pods, func(p *Pod) bool { return p.Name == name })
}

// Client is the Pod of Manual that asks from a node.
func (l *Lab) Client(node string) *Pod { return l.Pod(ClientOn(node)) }

func (l *Lab) namespaces() []*Namespace {
	var all []*Namespace
	for _, p := range l.pods {
		all = append(all, p.Namespace)
	}
	for _, n := range l.nodes {
		all = append(all, n.Namespace)
	}
	for _, n := range []*Namespace{l.Outside, l.fabric} {
		if n != nil {
			all = append(all, n)
		}
	}
	return all
}

func (l *Lab) addNode(spec NodeSpec) error {
	ns, err := newNamespace(spec.Name, l.spawn)
	if err != nil {
		return err
	}
	ns.Addrs = spec.Addrs
	lock, err := l.lockFile(spec.Name)
	if err != nil {
		return err
	}
	ns.Env = []string{"XTABLES_LOCKFILE=" + lock}
	n := &Node{Namespace: ns, Spec: spec, mac: macOf(nodeMAC, len(l.nodes))}
	l.nodes = append(l.nodes, n)
	if err := n.beRouter(); err != nil {
		return err
	}
	return l.plug(ns, n.mac)
}

// lockFile is a file for the lock of iptables-legacy, which else is one for the whole
// machine. It lives in memory only and has a name for as long as this process has it open.
func (l *Lab) lockFile(node string) (string, error) {
	fd, err := unix.MemfdCreate("xtables.lock of "+node, unix.MFD_CLOEXEC)
	if err != nil {
		return "", fmt.Errorf("making a lock file: %w", err)
	}
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
	l.open = append(l.open, os.NewFile(uintptr(fd), path))
	return path, nil
}

func (l *Lab) addPod(spec PodSpec) error {
	node := l.Node(spec.Node)
	if node == nil {
		return fmt.Errorf("the layout has no node %q", spec.Node)
	}
	ns, err := newNamespace(spec.Name, l.spawn)
	if err != nil {
		return err
	}
	ns.Addrs = spec.Addrs
	p := &Pod{Namespace: ns, Spec: spec, Node: node}
	l.pods = append(l.pods, p)
	if err := ns.beHost(); err != nil {
		return err
	}
	if err := node.attach(p, macOf(podMAC, len(l.pods))); err != nil {
		return err
	}
	servers, err := echo(p)
	l.open = append(l.open, servers...)
	return err
}
