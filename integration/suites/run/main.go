// Command run runs suites of the table in integration/suites, several at a time, and prints a table
// of how they ended:
//
//	go run ./integration/suites/run -tier core
//	go run ./integration/suites/run -suites streams,rights
//
// It also prepares what else needs a machine with tools:
//
//	go run ./integration/suites/run -install iptables,machines   Debian packages, by groups
//	go run ./integration/suites/run -ensure control-plane        tools, built from Go modules
//
// The whole output of each suite is kept in bin/suites. It is started in the root of the
// repository, by make. docs/testing.md lists the variables that it reads.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gridproxy/integration/suites"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// errFailed is the error after the table of results, which shows why.
var errFailed = errors.New("not all suites passed; the table above says which, bin/suites holds their whole output")

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	names := flags.String("suites", "", "run these suites: names, separated by commas")
	tier := flags.String("tier", "", "run the suites of this tier: core, fuzz, or all (core and extended)")
	rest := flags.Bool("rest", false, "run the extended suites in the order of CI, then the fuzz targets")
	list := flags.Bool("list", false, "print the table of suites")
	order := flags.Bool("order", false, "print the order in which -rest runs the extended suites")
	install := flags.String("install", "", "install these groups of Debian packages where a program is missing: "+strings.Join(groupNames(), ", "))
	ensure := flags.String("ensure", "", "build these tools unless they are there, and print their folders: all, or "+strings.Join(toolNames(), ", "))
	if err := flags.Parse(args); err != nil {
		return err
	}
	table := suites.All()
	switch {
	case *install != "" || *ensure != "":
		if err := installGroups(ctx, splitList(*install)); err != nil {
			return err
		}
		return ensureTools(ctx, splitList(*ensure), os.Stdout, os.Stderr)
	case *list:
		fmt.Print(suites.Listing(table))
		return nil
	}
	config, err := readEnvironment(os.Getenv)
	if err != nil {
		return err
	}
	switch {
	case *order:
		printOrder(ctx, config.base, table)
		return nil
	case *rest:
		extended, _ := ordered(ctx, config.base, table)
		return runAll(ctx, config, append(extended, suites.Tiers(table, suites.Fuzz)...))
	}
	chosen, err := choose(table, *names, *tier)
	if err != nil {
		return err
	}
	return runAll(ctx, config, chosen)
}

// choose returns the suites to run, in their order.
func choose(table []suites.Suite, names, tier string) ([]suites.Suite, error) {
	tiers := map[string][]suites.Tier{"core": {suites.Core}, "all": {suites.Core, suites.Extended}, "fuzz": {suites.Fuzz}}[tier]
	switch {
	case names != "":
		chosen, err := suites.Choose(table, splitList(names))
		return suites.LongestFirst(chosen), err
	case tiers != nil:
		return suites.LongestFirst(suites.Tiers(table, tiers...)), nil
	}
	return nil, fmt.Errorf("no suites are chosen: use -suites NAMES or -tier core, all or fuzz, not %q", tier)
}

// runAll runs the suites and prints the table, together with the results that an earlier part of
// the same run has left in the folder of results.
func runAll(ctx context.Context, config config, chosen []suites.Suite) error {
	earlier, err := readResults(config.results)
	if err != nil {
		return err
	}
	r, err := newRunner(ctx, config)
	if err != nil {
		return err
	}
	r.earlier = earlier
	if len(earlier) == 0 {
		_ = os.Remove(filepath.Join(r.logs, "builds")) // of an earlier run
	}
	preparing, cancel := r.bound(ctx)
	defer r.prepared.background.Wait()
	defer cancel() // what is still being downloaded is not needed any more
	begin, waited := time.Now(), readPressure()
	r.prepared.all(preparing, chosen)
	machine := calibrate(preparing)
	fmt.Println("== " + machine.Calibration())
	stop := startBurden(ctx, r.root, config.burden)
	results := r.runTiers(ctx, chosen)
	stop()
	machine.Took, machine.Waited = time.Since(begin), readPressure()-waited
	machine.Used = suites.CPU(results)
	results = append(earlier, results...)
	fmt.Printf("\n%s", suites.Table(results, machine, time.Since(config.budget.Start)))
	if err := writeResults(config.results, results); err != nil {
		return err
	}
	if !suites.Succeeded(results) {
		return errFailed
	}
	return nil
}
