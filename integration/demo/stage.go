package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"
)

type stage struct {
	out       io.Writer
	keep      string // where the manifests stay; "" = nowhere
	dir       string // of the binary, and of the manifests unless they are kept
	binary    string
	lab       *netns.Lab
	manifests *netns.Manifests
	endpoints []*netns.Pod
	daemons   []*netns.Gridproxy
}

// How long one request, and one step, may take on a busy machine.
const (
	requestDeadline = 5 * time.Second
	stepDeadline    = 30 * time.Second
)

var clusterIP = netip.MustParseAddr("172.16.33.231")

func (s *stage) frontend() netip.AddrPort { return netip.AddrPortFrom(clusterIP, 80) }

// Close takes everything down.
func (s *stage) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stepDeadline)
	defer cancel()
	var errs []error
	for _, d := range s.daemons {
		errs = append(errs, d.Stop(ctx))
	}
	if s.lab != nil {
		errs = append(errs, s.lab.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

func (s *stage) build(ctx context.Context) (_ string, err error) {
	s.binary, err = program.Path(ctx, program.Gridproxy)
	return "", err
}

func (s *stage) makeLab(context.Context) (_ string, err error) {
	if s.lab, err = netns.New(netns.Manual()); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d nodes, %d pods", len(s.lab.Nodes()), len(s.lab.Pods())), nil
}

func (s *stage) writeManifests(context.Context) (string, error) {
	for _, p := range s.lab.Pods() {
		if p.Name != netns.ClientOn(p.Spec.Node) {
			s.endpoints = append(s.endpoints, p)
		}
	}
	s.manifests = netns.NewManifests(cmp.Or(s.keep, filepath.Join(s.dir, "manifests")), netns.Manual())
	if err := os.MkdirAll(s.manifests.Dir, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of the manifests: %w", err)
	}
	_, name, _ := strings.Cut(serviceName, "/")
	service := netns.NewService(name, clusterIP)
	netns.Confine(service, fmt.Sprintf("[%q]", netns.UnitKey))
	s.manifests.Serve(service, s.endpoints...)
	return "nodes, services, endpoint slices", s.manifests.Write()
}

// refuse returns an error if manifests are to be kept where other files are, which would be read as
// manifests too.
func (s *stage) refuse() error {
	if s.keep == "" {
		return nil
	}
	files, err := os.ReadDir(s.keep)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("looking into the folder for the manifests: %w", err)
	case len(files) > 0:
		return fmt.Errorf("the manifests are not written to %s, because it is not empty: choose another folder for KEEP, or remove %s", s.keep, files[0].Name())
	}
	return nil
}

// kept says where the manifests stay, and what to do with them.
func (s *stage) kept() string {
	if s.keep == "" {
		return ""
	}
	return fmt.Sprintf("\n  The manifests stay in %[1]s. Try: gridproxy matrix --manifests %[1]s\n", s.keep)
}

func (s *stage) startAll(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, stepDeadline, fmt.Errorf("not ready after %s", stepDeadline))
	defer cancel()
	for _, n := range s.lab.Nodes() {
		d, err := n.RunGridproxy(s.binary, s.manifests.Dir, "--cluster-cidr", netns.ClusterCIDRs(), netns.NoStatusSocket)
		if err != nil {
			return "", err
		}
		s.daemons = append(s.daemons, d)
	}
	for _, d := range s.daemons {
		if err := d.Ready(ctx); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d ready", len(s.daemons)), nil
}

// unit is which unit the manifests put a node in.
func (s *stage) unit(node string) string { return s.manifests.Node(node).Labels[netns.UnitKey] }

// ask sends the requests from a Pod on every node, all nodes at once, and prints the matrix.
func (s *stage) ask(ctx context.Context) (netns.Verdict, error) {
	var nodes, endpoints []netns.Member
	for _, n := range s.lab.Nodes() {
		nodes = append(nodes, netns.Member{Node: n.Name, Unit: s.unit(n.Name)})
	}
	for _, p := range s.endpoints {
		endpoints = append(endpoints, netns.Member{Node: p.Spec.Node, Unit: s.unit(p.Spec.Node), Pod: p.Name, Label: p.Addr(netns.IPv4).String()})
	}
	m := netns.NewMatrix(nodes, endpoints)
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, n := range s.lab.Nodes() {
		all.Go(func() {
			answers, failed := s.askFrom(ctx, s.lab.Client(n.Name))
			mu.Lock()
			defer mu.Unlock()
			m.Add(n.Name, answers, failed)
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return netns.Verdict{}, ctx.Err()
	}
	fmt.Fprintf(s.out, "\n  %d requests to %s from a pod on each node: who was answered by whom\n\n", requests, s.frontend())
	m.Print(s.out)
	for _, n := range nodes {
		if failed := m.Failed(n.Node); len(failed) > 0 {
			fmt.Fprintf(s.out, "\n  %s: %v\n", n.Node, failed[0])
		}
	}
	return m.Verdict(), nil
}

func (s *stage) askFrom(ctx context.Context, pod *netns.Pod) (pods []string, failed []error) {
	for range requests {
		ctx, cancel := context.WithTimeout(ctx, requestDeadline)
		a, err := pod.Fetch(ctx, s.frontend())
		cancel()
		if err != nil {
			failed = append(failed, err)
			continue
		}
		pods = append(pods, a.Pod)
	}
	return pods, failed
}

// rulesOn are the Service's rules in the kernel of a node.
func (s *stage) rulesOn(ctx context.Context, n *netns.Node) ([]string, error) {
	save, err := n.Save(ctx, "iptables-nft-save", "-t", "nat")
	if err != nil {
		return nil, err
	}
	return netns.RulesOf(save, serviceName), nil
}

func (s *stage) printRules(ctx context.Context, node string) error {
	rules, err := s.rulesOn(ctx, s.lab.Node(node))
	if err != nil {
		return err
	}
	slices.SortStableFunc(rules, func(a, b string) int { return cmp.Compare(step(a), step(b)) })
	fmt.Fprintf(s.out, "\n  The rules of %s (%s): iptables-save -t nat, the lines of this Service\n\n", node, s.unit(node))
	for _, r := range rules {
		fmt.Fprintln(s.out, wrap(r, 96))
	}
	return nil
}

// step is how far on its way a packet meets a rule.
func step(rule string) int {
	return slices.IndexFunc([]string{"-A KUBE-SERVICES", "-A KUBE-SVC", "-A KUBE-SEP"}, func(chain string) bool {
		return strings.HasPrefix(rule, chain)
	})
}

// wrap breaks a rule that is too long in front of a match or its target and indents what
// follows.
func wrap(rule string, width int) string {
	const first, later = "  ", "      "
	var b strings.Builder
	b.WriteString(first)
	at := len(first)
	// A newline marks where the rule may be broken; no rule has one.
	breakable := strings.NewReplacer(" -m ", "\n-m ", " -j ", "\n-j ").Replace(rule)
	for i, part := range strings.Split(breakable, "\n") {
		switch {
		case i == 0:
		case at+1+len(part) > width:
			b.WriteString("\n" + later)
			at = len(later)
		default:
			b.WriteString(" ")
			at++
		}
		b.WriteString(part)
		at += len(part)
	}
	return b.String()
}

// move relabels a node in its manifest and waits until every node's kernel follows.
func (s *stage) move(ctx context.Context, node, to string) error {
	from := s.unit(node)
	fmt.Fprintf(s.out, "\n  Now %s moves: in nodes.yaml its label %s: %s becomes %s: %s\n\n", node, netns.UnitKey, from, netns.UnitKey, to)
	return s.step(ctx, "edit the manifest, wait for the rules of all nodes", func(ctx context.Context) (string, error) {
		s.manifests.Node(node).Labels[netns.UnitKey] = to
		if err := s.manifests.Write(); err != nil {
			return "", err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, stepDeadline, fmt.Errorf("no change after %s", stepDeadline))
		defer cancel()
		for _, n := range s.lab.Nodes() {
			if err := s.follows(ctx, n); err != nil {
				return "", err
			}
		}
		return "in force on all nodes", nil
	})
}

// follows waits until the kernel of a node sends the Service's packets exactly to the
// endpoints of the node's unit.
func (s *stage) follows(ctx context.Context, n *netns.Node) error {
	var want []netip.AddrPort
	for _, p := range s.endpoints {
		if s.unit(p.Spec.Node) == s.unit(n.Name) {
			want = append(want, netip.AddrPortFrom(p.Addr(netns.IPv4), netns.EchoPort))
		}
	}
	slices.SortFunc(want, netip.AddrPort.Compare)
	return wait.For(ctx, func(ctx context.Context) error {
		rules, err := s.rulesOn(ctx, n)
		if err != nil {
			return err
		}
		got, err := netns.Endpoints(rules)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%s sends to %v, should send to %v", n.Name, got, want)
		}
		return err
	})
}
