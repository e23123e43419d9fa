package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"gridproxy/integration/env/apiserver"
)

type settings struct {
	services []int
	variants []apiserver.Variant
	changes  int // how often one change is measured
	starts   int // how often a cold start is
	connects int // how many connections the latency is taken from
	proxies  []proxy
	env      []string // added to gridproxy's environment
	profile  string   // folder for profiles of gridproxy; "" = none

	// startLimit bounds a cold start. With nft kube-proxy takes up to a minute for 10,000 Services,
	// and far more than four times as long for twice as many.
	startLimit time.Duration
}

func main() {
	args := os.Args[1:]
	others := map[string]func(args []string) int{"-ipvs": runIPVS, "-nodes": runDownload, "-grids": runGrids, "-saved": runSaved, "-dns": runDNS}
	if len(args) > 0 && others[args[0]] != nil {
		os.Exit(others[args[0]](args[1:]))
	}
	os.Exit(run(args))
}

func run(args []string) int {
	var s settings
	var services, variants, only string
	return subcommand{
		limit: time.Hour,
		flags: func(flags *flag.FlagSet) {
			flags.StringVar(&services, "services", "1000,5000,10000", "numbers of Services, ascending")
			flags.StringVar(&variants, "variants", "nft,legacy", "variants of iptables")
			flags.StringVar(&only, "only", "", "measure only kube-proxy or only gridproxy")
			flags.Func("env", "NAME=VALUE for gridproxy's environment, such as GOGC=25; may be repeated", func(v string) error {
				s.env = append(s.env, v)
				return nil
			})
			flags.IntVar(&s.changes, "changes", 20, "measurements of a changed endpoint")
			flags.IntVar(&s.starts, "starts", 3, "measurements of a cold start, at least 2")
			flags.IntVar(&s.connects, "connects", 2000, "connections to take the latency from")
			flags.StringVar(&s.profile, "profile", "", "folder to write CPU and heap profiles of gridproxy to")
			flags.DurationVar(&s.startLimit, "start-limit", 15*time.Minute, "measure nothing else of a kube-proxy that does not serve within this long")
		},
		check: func() error {
			if s.proxies = []proxy{proxy(only)}; only == "" {
				s.proxies = []proxy{kubeProxy, gridproxy}
			}
			if p := s.proxies[0]; p != kubeProxy && p != gridproxy {
				return fmt.Errorf("-only %s: want kube-proxy or gridproxy", p)
			}
			if s.changes < 1 || s.starts < 2 || s.connects < 1 {
				return errors.New("-changes and -connects must be at least 1, -starts at least 2")
			}
			return s.lists(services, variants)
		},
		run: func(ctx context.Context) error {
			results, err := compare(ctx, s)
			if len(results) > 0 {
				fmt.Print(report(results, machine(context.WithoutCancel(ctx)), s))
			}
			return err
		},
	}.start(args)
}

func (s *settings) lists(services, variants string) error {
	for _, text := range strings.Split(services, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 10 || n > 20000 || len(s.services) > 0 && n <= s.services[len(s.services)-1] {
			return fmt.Errorf("-services %s: want ascending numbers from 10 to 20000, such as 1000,5000", services)
		}
		s.services = append(s.services, n)
	}
	for _, text := range strings.Split(variants, ",") {
		v := apiserver.Variant(text)
		if v != apiserver.NFT && v != apiserver.Legacy {
			return fmt.Errorf("-variants %s: want nft, legacy or both", variants)
		}
		s.variants = append(s.variants, v)
	}
	return nil
}

// compare runs everything. What was measured before an error is returned with it.
func compare(ctx context.Context, s settings) (results []result, err error) {
	w, err := newWorld(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	for _, n := range s.services {
		if err := w.seed(ctx, n); err != nil {
			return results, fmt.Errorf("making %d Services: %w", n, err)
		}
		for _, v := range s.variants {
			measured, err := w.takeTurns(ctx, v)
			results = append(results, measured...)
			if err != nil {
				return results, err
			}
		}
	}
	return results, nil
}

// takeTurns measures the programs with one variant and the Services that there are, a round of
// each at a time.
func (w *world) takeTurns(ctx context.Context, v apiserver.Variant) ([]result, error) {
	var results []result
	for _, p := range w.proxies {
		results = append(results, result{proxy: p, variant: v, services: len(w.vips)})
	}
	for round := range w.starts {
		for i := range results {
			r := &results[i]
			if r.unserved > 0 {
				continue
			}
			say("%s, %d Services, iptables-%s, round %d of %d", r.proxy, r.services, v, round+1, w.starts)
			err := w.measure(ctx, r, round)
			var late notServing
			if r.proxy == kubeProxy && errors.As(err, &late) {
				say("  given up: %v", err)
				r.unserved = late.within
			} else if err != nil {
				return nil, fmt.Errorf("%s with %d Services and iptables-%s: %w", r.proxy, r.services, v, err)
			}
		}
	}
	return results, nil
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
