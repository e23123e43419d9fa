package netns

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/integration/env/wait"
)

// Gridproxy is a daemon that runs on a node.
type Gridproxy struct {
	*Process
	node *Node
}

// The daemon's preset addresses, as kube-proxy's.
var (
	healthz = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 10256)
	metrics = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 10249)
)

// NoStatusSocket is a flag for daemons of several nodes, which would share the path of the socket.
// Older releases do not know it.
const NoStatusSocket = "--status-socket="

// RunGridproxy starts `gridproxy run` on the node. The machine's conntrack table is left as
// it is; the other flags are the caller's.
func (n *Node) RunGridproxy(binary, manifests string, flags ...string) (*Gridproxy, error) {
	args := slices.Concat([]string{"run", "--node-name", n.Name, "--manifests", manifests, "--conntrack-max-per-core", "0"}, flags)
	p, err := n.Start(binary, args...)
	if err != nil {
		return nil, err
	}
	return &Gridproxy{Process: p, node: n}, nil
}

// Ready waits until the daemon has written its rules for the first time.
func (g *Gridproxy) Ready(ctx context.Context) error {
	err := wait.For(ctx, func(ctx context.Context) error {
		select {
		case <-g.Done():
			return wait.Stop(fmt.Errorf("it ended with code %d", g.ExitCode()))
		default:
			return g.node.Readyz(ctx)
		}
	})
	if err != nil {
		return fmt.Errorf("waiting for gridproxy on %s: %w; its log:\n%s", g.node.Name, err, g.Log())
	}
	return nil
}

// Readyz asks the daemon in the namespace, once, whether its rules are written. The error says that they are not,
// or that there is no daemon; kube-proxy has no such page.
func (n *Namespace) Readyz(ctx context.Context) error {
	page, err := n.Get(ctx, healthz, "/readyz")
	if err == nil && page.Code != http.StatusOK {
		err = fmt.Errorf("/readyz on %s says %d: %s", n.Name, page.Code, bytes.TrimSpace(page.Text))
	}
	return err
}

// Healthz asks the daemon's health server for a path.
func (g *Gridproxy) Healthz(ctx context.Context, path string) (Page, error) {
	return g.node.Get(ctx, healthz, path)
}

// Metrics asks the daemon's metrics server for a path.
func (g *Gridproxy) Metrics(ctx context.Context, path string) (Page, error) {
	return g.node.Get(ctx, metrics, path)
}

// Save is what iptables-save prints on the node. The tool is the whole name, such as
// ip6tables-legacy-save.
func (n *Node) Save(ctx context.Context, tool string, args ...string) (string, error) {
	out, err := n.Run(ctx, nil, tool, args...)
	return string(out), err
}

// RulesOf picks the lines of a save that belong to one port of a Service, by its comment:
// its entry in KUBE-SERVICES, its chains and their endpoints.
func RulesOf(save, service string) []string {
	var rules []string
	lines := bufio.NewScanner(strings.NewReader(save))
	for lines.Scan() {
		line := lines.Text()
		// After the Service's name the comment ends or goes on with what the rule is for.
		if strings.HasPrefix(line, "-A ") && (strings.Contains(line, `"`+service+`"`) || strings.Contains(line, `"`+service+" ")) {
			rules = append(rules, line)
		}
	}
	return rules
}

// Endpoints are the addresses that the rules of a Service translate to, sorted.
func Endpoints(rules []string) ([]netip.AddrPort, error) {
	var found []netip.AddrPort
	var errs []error
	for _, rule := range rules {
		_, to, ok := strings.Cut(rule, "--to-destination ")
		if !ok {
			continue
		}
		to, _, _ = strings.Cut(to, " ")
		addr, err := netip.ParseAddrPort(to)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading %q: %w", rule, err))
			continue
		}
		found = append(found, addr)
	}
	slices.SortFunc(found, netip.AddrPort.Compare)
	return found, errors.Join(errs...)
}
