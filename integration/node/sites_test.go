package node

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/promise"
	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sites are three sites of two machines each, with a daemon on each machine and one API server. A
// site loses its link as a whole. At first each is a unit; the labels of its Nodes change later.
type sites struct {
	labCluster
	binary   string
	random   *rand.Rand
	nodes    []*siteNode     // two of each site, one after the other
	exists   map[string]bool // Services
	did      map[string]int  // steps, by kind
	history  []string        // of steps, for people
	withheld int             // endpoints outside of a unit, over all checks
}

// The second key of closed Services beside netns.UnitKey.
const zoneKey = "zone"

func units() []string { return []string{"beijing", "guangzhou", "shanghai"} }
func zones() []string { return []string{"east", "west"} }

// TestSitesSoak changes a cluster of six daemons at random, one step after the other: sites lose
// their link for 1 to 30 s, daemons are restarted or killed, machines rebooted, Nodes move between
// units, endpoints come, go and turn not ready, Services come, go and change. After each step
// siteNode.check must find nothing on each Node. GRIDPROXY_SOAK_SITES is how long it goes on, and
// GRIDPROXY_SOAK_SITES_SEED decides the steps; how much of a step a daemon has done when the next
// one begins depends on the machine.
func TestSitesSoak(t *testing.T) {
	length := setting(t, "GRIDPROXY_SOAK_SITES", 30*time.Second)
	s := newSites(t)
	seed := rand.Uint64()
	if text := os.Getenv("GRIDPROXY_SOAK_SITES_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		must(s.t, err)
	}
	t.Logf("seed %d (repeat with GRIDPROXY_SOAK_SITES_SEED=%d)", seed, seed)
	s.random = rand.New(rand.NewPCG(seed, 1))
	for _, name := range serviceNames() {
		s.create(name)
	}
	for _, n := range s.nodes {
		n.start()
	}
	s.check("the start")
	wait.Until(s.t, "every state is saved", func() error {
		for _, n := range s.nodes {
			if _, err := os.Stat(n.stateFile()); err != nil {
				return err
			}
		}
		return nil
	})
	count := 0
	for end := time.Now().Add(length); time.Now().Before(end); count++ {
		s.returnLinks(time.Now())
		s.step(count)
		s.check(fmt.Sprintf("step %d", count))
	}
	s.returnLinks(time.Now().Add(time.Hour))
	for _, n := range s.nodes {
		if n.follows != nil {
			err := <-n.follows
			n.follows <- err
		}
	}
	s.check("the return of all links")
	t.Logf("%d steps: %v; %d endpoints outside of the unit at %d checks", count, s.did, s.withheld, 6*(count+2))
	if s.withheld == 0 {
		t.Error("no check had an endpoint outside of the unit: closure was not tested")
	}
}

func newSites(t *testing.T) *sites {
	t.Helper()
	layout := netns.Manual()
	layout.Pods = nil // no packet is sent
	for i, n := range layout.Nodes {
		n.Labels[netns.UnitKey], n.Labels[zoneKey] = units()[i/2], zones()[i%2]
	}
	s := &sites{labCluster: labClusterOf(t, layout), exists: map[string]bool{}, did: map[string]int{}}
	s.ctx = t.Context()
	s.binary = program.ForTest(t, program.Gridproxy)
	dir := t.TempDir()
	for _, n := range s.Nodes() {
		s.nodes = append(s.nodes, &siteNode{Node: n, sites: s, stateDir: filepath.Join(dir, n.Name)})
	}
	return s
}

// linkRules are the two rules of the API server's machine that cut a node off. Nothing reaches the
// node but resets, if a connection to the API server is to be refused instead of getting lost.
func linkRules(n *siteNode, refused bool) [][]string {
	addr := n.Addr(netns.IPv4).String()
	in := []string{"INPUT", "-s", addr, "-j", "DROP"}
	if refused {
		in = []string{"INPUT", "-s", addr, "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset"}
	}
	return [][]string{in, {"OUTPUT", "-d", addr, "-p", "tcp", "!", "--tcp-flags", "RST", "RST", "-j", "DROP"}}
}

// setLink inserts (-I) or deletes (-D) the rules that cut a node off.
func (s *sites) setLink(n *siteNode, do string, refused bool) {
	s.t.Helper()
	for _, rule := range linkRules(n, refused) {
		_, err := s.Outside.Run(s.ctx, nil, "iptables-nft", append([]string{do}, rule...)...)
		must(s.t, err)
	}
}

func (s *sites) returnLinks(now time.Time) {
	s.t.Helper()
	for _, n := range s.nodes {
		if !n.isCut() || n.back.After(now) {
			continue
		}
		s.setLink(n, "-D", n.refused)
		n.back, n.killed, n.behind, n.returned = time.Time{}, false, true, true
		s.note("return", "the link of "+n.Name)
		n.follows = make(chan error, 1)
		go func() { n.follows <- n.clean(s.ctx) }()
	}
}

// known is what the API server has.
func (s *sites) known() knownCluster {
	s.t.Helper()
	nodes, err := s.api.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{})
	must(s.t, err)
	services, err := s.api.CoreV1().Services("default").List(s.ctx, metav1.ListOptions{})
	must(s.t, err)
	slices, err := s.api.DiscoveryV1().EndpointSlices("default").List(s.ctx, metav1.ListOptions{})
	must(s.t, err)
	c, err := knownToAPI(nodes.Items, services.Items, slices.Items)
	must(s.t, err)
	return c
}

func (s *sites) check(after string) {
	s.t.Helper()
	now := s.known()
	errs := make([]error, len(s.nodes))
	var checking sync.WaitGroup
	for i, n := range s.nodes {
		s.withheld += now.outsideOf(n.Name)
		checking.Go(func() { errs[i] = n.check(now) })
	}
	checking.Wait()
	for i, err := range errs {
		if err != nil {
			n := s.nodes[i]
			if errors.Is(err, errLeak) {
				promise.Broken(s.t, promise.Closure, "after %s: %v", after, err)
			}
			s.t.Errorf("after %s, %s (cut off: %v; daemon killed since: %v): %v\nits daemon said:\n%s", after, n.Name, n.isCut(), n.killed, err, n.daemon.Log())
		}
	}
	if s.t.Failed() {
		s.t.Fatalf("the last steps were:\n%s", strings.Join(s.history[max(0, len(s.history)-40):], "\n"))
	}
}

// note counts what a step does, and keeps its description for a failure.
func (s *sites) note(kind, what string) {
	s.did[kind]++
	s.history = append(s.history, fmt.Sprintf("%s %s: %s", time.Now().Format(time.TimeOnly), kind, what))
}
