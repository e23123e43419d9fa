package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/program"
)

// dnsCompare compares grid-dns with CoreDNS as a cluster's DNS, and with CoreDNS as a node's cache.
type dnsCompare struct {
	services []int
	rounds   int
	seconds  int // of each load
	changes  int // of an EndpointSlice
	profile  string

	world    *world
	node     *netns.Node
	programs map[string]string // paths
	seeded   int               // Services that exist
}

func runDNS(args []string) int {
	c := dnsCompare{}
	services := ""
	return subcommand{
		name: "-dns", limit: time.Hour,
		flags: func(fs *flag.FlagSet) {
			fs.StringVar(&services, "services", "1000,10000", "numbers of Services, ascending")
			fs.IntVar(&c.rounds, "rounds", 11, "rounds in which the servers take turns")
			fs.IntVar(&c.seconds, "seconds", 1, "duration of each load in a round")
			fs.IntVar(&c.changes, "changes", 200, "changes of one EndpointSlice")
			fs.StringVar(&c.profile, "profile", "", "folder to write CPU and heap profiles of gridproxy to")
		},
		check: func() error {
			if c.rounds < 1 || c.seconds < 1 || c.changes < 1 {
				return errors.New("-rounds, -seconds and -changes must be at least 1")
			}
			s := settings{}
			err := s.lists(services, string(apiserver.NFT))
			c.services = s.services
			return err
		},
		run: func(ctx context.Context) error { return c.compare(ctx) },
	}.start(args)
}

func (c *dnsCompare) compare(ctx context.Context) (err error) {
	if c.world, err = newWorld(ctx, settings{startLimit: 5 * time.Minute, profile: c.profile}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.world.close()) }()
	if err := c.prepare(ctx); err != nil {
		return err
	}
	var results []dnsResult
	defer func() {
		if len(results) > 0 {
			fmt.Print(c.report(results, machine(context.WithoutCancel(ctx))))
		}
	}()
	for _, n := range c.services {
		if err := c.seed(ctx, n); err != nil {
			return fmt.Errorf("making %d Services: %w", n, err)
		}
		r, err := c.measure(ctx, n, n == c.services[len(c.services)-1])
		if err != nil {
			return fmt.Errorf("with %d Services: %w", n, err)
		}
		results = append(results, r)
	}
	return nil
}

// prepare builds the programs, and gives each server an address.
func (c *dnsCompare) prepare(ctx context.Context) error {
	c.node = c.world.lab.Node(nodeOf(gridproxy, apiserver.NFT))
	gridDNS, err := program.Path(ctx, program.GridDNS)
	if err != nil {
		return err
	}
	coreDNS, err := apiserver.EnsureCoreDNS(ctx, os.Stderr)
	if err != nil {
		return err
	}
	nodeLocal, err := apiserver.EnsureNodeLocalDNS(ctx, os.Stderr)
	if err != nil {
		return err
	}
	c.programs = map[string]string{dnsOfUnit: gridDNS, dnsOfCluster: coreDNS, dnsOfCache: nodeLocal}
	for _, addr := range []string{clusterDNSAddr, cacheDNSAddr, floodFrom, askFrom} {
		if _, err := c.node.Run(ctx, nil, "ip", "addr", "add", addr+"/32", "dev", "lo"); err != nil {
			return err
		}
	}
	return c.addClusterDNS(ctx)
}

// dnsResult is what was measured with so many Services. Each figure is of a round, by server.
type dnsResult struct {
	services  int
	questions int // that differ, in the load of names that exist
	rate      int // queries a second for which latency was measured
	known     map[string][]dnsLoad
	missing   map[string][]dnsLoad
	steady    map[string][]dnsLoad // at rate
	memory    map[string][]float64 // resident, in bytes
	changes   []dnsChange
	lags      []time.Duration // of grid-dns behind CoreDNS, by change, ascending
	flood     dnsFlood
}

// measure starts all servers, lets them take turns, and stops them.
func (c *dnsCompare) measure(ctx context.Context, services int, last bool) (r dnsResult, err error) {
	r = dnsResult{
		services: services, known: map[string][]dnsLoad{}, missing: map[string][]dnsLoad{}, steady: map[string][]dnsLoad{}, memory: map[string][]float64{},
	}
	s, err := c.startServers(ctx)
	defer s.stop()
	if err != nil {
		return r, err
	}
	known, missing := c.questions(services), missingQuestions(services)
	r.questions = len(known)
	load := dnsLoader{
		node: c.node, seconds: c.seconds,
		known: filepath.Join(c.world.dir, "known"), missing: filepath.Join(c.world.dir, "missing"),
	}
	err = errors.Join(
		os.WriteFile(load.known, []byte(strings.Join(known, "\n")+"\n"), 0o644),
		os.WriteFile(load.missing, []byte(strings.Join(missing, "\n")+"\n"), 0o644))
	if err != nil {
		return r, fmt.Errorf("writing the questions: %w", err)
	}
	if r.rate, err = c.agree(ctx, s, load); err != nil {
		return r, err
	}
	for round := range c.rounds {
		say("%d Services, round %d of %d", services, round+1, c.rounds)
		// Each round begins with another server, because a machine is not equally fast all the time.
		turns := slices.Concat(s.all[round%len(s.all):], s.all[:round%len(s.all)])
		if err := load.takeTurns(ctx, turns, &r); err != nil {
			return r, err
		}
	}
	if !last {
		return r, nil
	}
	if r.changes, err = c.measureChanges(ctx, s); err == nil {
		r.lags, err = c.measureLag(ctx, s)
	}
	if err == nil {
		r.flood, err = c.measureFlood(ctx, s, load)
	}
	return r, err
}

// agree checks that all servers give the same kind of answer to every question, in answers of the
// same size, and returns the rate for latency: half of what the slower of the two servers with all
// names reaches.
func (c *dnsCompare) agree(ctx context.Context, s *dnsServers, load dnsLoader) (rate int, err error) {
	sizes := map[string]float64{}
	slowest := 0.0
	for _, server := range s.all {
		if err := load.fill(ctx, server); err != nil {
			return 0, err
		}
		l, err := load.run(ctx, server, load.known, "NOERROR", fmt.Sprintf("-l%d", load.seconds))
		if err != nil {
			return 0, err
		}
		sizes[server.name] = l.size
		if server.name != dnsOfCache && (slowest == 0 || l.perSecond < slowest) {
			slowest = l.perSecond
		}
		say("  %s: %.0f queries a second, answers of %.0f bytes", server.name, l.perSecond, l.size)
	}
	if difference := sizes[dnsOfUnit] / sizes[dnsOfCluster]; difference < 0.97 || difference > 1.03 {
		return 0, fmt.Errorf("the answers of grid-dns have %.0f bytes, those of CoreDNS %.0f: they do not say the same", sizes[dnsOfUnit], sizes[dnsOfCluster])
	}
	return max(1, int(slowest/2)), nil
}
