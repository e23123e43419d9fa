package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
	"gridproxy/topology/watch"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// siteNode is a machine of a site, and its daemon.
//
// What must hold after each step, beside closure of what known says:
//
//   - connected: `gridproxy diff` finds nothing. known is the API server's. After a cut the daemon
//     gets waitTimeout until that is so, while other steps go on: client-go pauses for up to half a
//     minute before it tries again, with each kind of objects for itself. Until the last kind has
//     followed, the rules may be of no cluster that ever was: they lead to an endpoint that is
//     gone, on a Node that has moved here. diff may find nothing before, because what changed was
//     in other units. So until the daemon is restarted, closure is waited for, and no other cut
//     follows.
//   - cut off: the rules are the last ones from before the cut, apart from their order and
//     comments, through restarts and reboots. known is from before the cut too.
//   - cut off, and the daemon was killed since: it may have lost the changes of the last minute,
//     because the state is saved at most once a minute. The rules lead to the endpoints of its
//     saved state, and known is what that says. Without a reboot the rules from before may stay
//     too.
type siteNode struct {
	*netns.Node
	sites    *sites
	stateDir string
	daemon   *netns.Process

	follows  chan error // after a cut, until the daemon has followed the API server; else nil
	back     time.Time  // when its link returns; zero = it is connected
	refused  bool       // while cut off: connections to the API server are refused, and not lost
	known    knownCluster
	rules    []string // of the last check
	killed   bool     // since its link was cut
	rebooted bool     // since the last check
	behind   bool     // rules may be older than known: restarted or rebooted since then, or returned
	returned bool     // a cut has ended since its daemon started
}

func (n *siteNode) isCut() bool { return !n.back.IsZero() }

// stateFile is the newest generation of the saved state.
func (n *siteNode) stateFile() string { return filepath.Join(n.stateDir, "state") }

// reconnectGrace is short, so that waves are held after a cut, and diff, which knows of none, soon
// finds nothing again.
const reconnectGrace = "5s"

func (n *siteNode) start() {
	n.sites.t.Helper()
	var err error
	n.daemon, err = n.Start(n.sites.binary, "run", "--node-name", n.Name, "--kubeconfig", n.sites.Kubeconfig(), "--iptables-variant", "nft",
		"--conntrack-max-per-core", "0", netns.NoStatusSocket, "--state-dir", n.stateDir, "--reconnect-grace", reconnectGrace)
	must(n.sites.t, err)
}

// end ends the daemon: with SIGTERM, after which everything is saved, or with SIGKILL.
func (n *siteNode) end(kill bool) {
	n.sites.t.Helper()
	n.killed, n.behind, n.returned = n.isCut() && (n.killed || kill), true, false
	if kill {
		n.daemon.Kill()
		return
	}
	ctx := wait.Usual.Context(n.sites.t)
	if err := n.daemon.Stop(ctx); ctx.Err() != nil || n.daemon.ExitCode() > 0 { // -1: before it listened to signals
		n.sites.t.Fatalf("stopping the daemon of %s: %v; it said:\n%s", n.Name, err, n.daemon.Log())
	}
}

// reboot ends the daemon, empties the kernel's tables and sets, and starts a daemon.
func (n *siteNode) reboot(kill bool) {
	n.sites.t.Helper()
	n.end(kill)
	for _, command := range [][]string{{"nft", "flush", "ruleset"}, {"ipset", "destroy"}} {
		_, err := n.Run(n.sites.ctx, nil, command[0], command[1:]...)
		must(n.sites.t, err)
	}
	n.rebooted = true
	n.start()
}

func (n *siteNode) move(key, value string) {
	n.sites.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
	_, err := n.sites.api.CoreV1().Nodes().Patch(n.sites.ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	must(n.sites.t, err)
}

// endpointsOf are the addresses behind each Service in rules.
func (n *siteNode) endpointsOf(rules string) (map[string]string, error) {
	all := map[string]string{}
	for _, service := range serviceNames() {
		to, err := netns.Endpoints(netns.RulesOf(rules, "default/"+service))
		if err != nil {
			return nil, err
		}
		all[service] = fmt.Sprint(to)
	}
	return all, nil
}

// errLeak says that a rule leads out of the unit, for which nothing is waited.
var errLeak = errors.New("closure is broken")

// closure looks for a rule of a Service that leads to an endpoint outside of the unit in each of
// the clusters.
func (n *siteNode) closure(rules string, known ...knownCluster) error {
	for _, service := range serviceNames() {
		to, err := netns.Endpoints(netns.RulesOf(rules, "default/"+service))
		if err != nil {
			return err
		}
		for _, e := range to {
			if !slices.ContainsFunc(known, func(c knownCluster) bool { return c.inUnit(n.Name, service, e.Addr()) }) {
				return fmt.Errorf("%w: the rules of %s on %s lead to %s", errLeak, service, n.Name, e)
			}
		}
	}
	return nil
}

func (n *siteNode) save(ctx context.Context) (string, error) {
	return n.Save(ctx, "iptables-nft-save", "-t", "nat")
}

// check says what is wrong after a step, at once or after waitTimeout. now is the API server's
// cluster.
func (n *siteNode) check(now knownCluster) error {
	if n.follows != nil {
		select {
		case err := <-n.follows:
			n.follows = nil
			if err != nil {
				return err
			}
		default:
			return nil
		}
	}
	if !n.isCut() {
		return n.checkConnected(n.sites.ctx, now)
	}
	if !n.rebooted && !n.killed {
		return wait.Usual.Do(n.sites.ctx, n.checkCut)
	}
	var leak error
	err := wait.Usual.For(n.sites.ctx, func(ctx context.Context) error {
		err := n.checkCut(ctx)
		if errors.Is(err, errLeak) {
			leak, err = err, nil
		}
		return err
	})
	n.rebooted = false
	return errors.Join(leak, err)
}

// checkConnected also looks whether closure holds while the daemon follows the step.
func (n *siteNode) checkConnected(ctx context.Context, now knownCluster) error {
	if rules, err := n.save(ctx); err != nil {
		return err
	} else if err := n.closure(rules, n.known, now); err != nil && !n.behind {
		return err
	}
	var rules string
	settled := func(ctx context.Context) error {
		err := n.clean(ctx)
		if err == nil {
			rules, err = n.save(ctx)
		}
		if err == nil {
			err = n.closure(rules, now)
		}
		return err
	}
	err := settled(ctx)
	if n.returned && errors.Is(err, errLeak) {
		err = wait.Usual.For(ctx, settled)
	}
	n.known, n.rules, n.rebooted, n.behind = now, serviceRules(rules), false, n.returned
	return err
}

// oneDiff is how long one diff waits. It is well below waitTimeout, so that what differs is
// printed.
const oneDiff = "20s"

// clean waits until the daemon has read the API server, and diff finds nothing. After a restart
// rules may be right before that. diff ends with an error if a daemon makes a table while it is
// read, after a reboot.
func (n *siteNode) clean(ctx context.Context) error {
	return wait.Usual.For(ctx, func(ctx context.Context) error {
		page, err := n.Get(ctx, healthz, "/readyz?verbose")
		if err == nil && (page.Code != http.StatusOK || strings.Contains(string(page.Text), "saved on disk")) {
			err = fmt.Errorf("/readyz says %d: %s", page.Code, page.Text)
		}
		if err != nil {
			return err
		}
		out, err := n.Run(ctx, nil, n.sites.binary, "diff", "--wait", oneDiff, "--node-name", n.Name, "--kubeconfig", n.sites.Kubeconfig(),
			"--iptables-variant", "nft")
		if err != nil {
			return fmt.Errorf("the rules differ: %w\n%s", err, out)
		}
		return nil
	})
}

// checkCut compares the rules with those from before the cut, or else with the saved state, once.
func (n *siteNode) checkCut(ctx context.Context) error {
	rules, err := n.save(ctx)
	if err != nil {
		return err
	}
	now := serviceRules(rules)
	if !n.killed || slices.Equal(now, n.rules) && !n.rebooted {
		if err := n.closure(rules, n.known); err != nil {
			return err
		}
		if !slices.Equal(now, n.rules) {
			return fmt.Errorf("%s is cut off and has %d rules instead of %d, such as %q", n.Name, len(now), len(n.rules), firstOther(n.rules, now))
		}
		return nil
	}
	saved, err := watch.ReadState(n.stateFile())
	if err != nil {
		return err
	}
	known, err := knownToDisk(saved.Snapshot)
	if err == nil {
		err = n.closure(rules, known, n.known)
	}
	if err != nil {
		return err
	}
	if err := n.wantSaved(ctx, rules); err != nil {
		return err
	}
	n.known, n.rules = known, now
	return n.closure(rules, known)
}

// wantSaved compares where rules lead to with the rules that the saved state gives.
func (n *siteNode) wantSaved(ctx context.Context, rules string) error {
	text, err := n.Run(ctx, nil, n.sites.binary, "render", "--from-state", n.stateFile())
	if err != nil {
		return err
	}
	want, err := n.endpointsOf(string(text))
	if err != nil {
		return err
	}
	got, err := n.endpointsOf(rules)
	for service := range want {
		if err == nil && got[service] != want[service] {
			err = fmt.Errorf("%s is cut off, and %s leads to %s; the saved state says %s", n.Name, service, got[service], want[service])
		}
	}
	return err
}
