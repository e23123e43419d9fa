package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"gridproxy/integration/env/netns"
)

func main() {
	machines := flag.Bool("machines", false, "a real cluster of four machines on this one, with the chart and the Grids of the sample")
	keep := flag.String("keep", "", "a folder for the manifests, which stay there; it is made, or must be empty")
	flag.Parse()
	if *machines && *keep != "" {
		fmt.Fprintln(os.Stderr, "cluster-demo has no manifests to keep: leave -keep out, or -machines")
		os.Exit(2)
	}
	if *machines {
		os.Exit(netns.RunDemo("cluster-demo", &machinesStage{}, os.Stdout, os.Stderr))
	}
	os.Exit(netns.RunDemo("demo", &stage{keep: *keep}, os.Stdout, os.Stderr))
}

// The Service of the SuperEdge manual.
const (
	serviceName = "default/servicegrid-demo-svc"
	requests    = 40 // from each node
	mover       = "gz-3"
)

// Show plays the whole story, top to bottom.
func (s *stage) Show(ctx context.Context, out io.Writer) (err error) {
	fmt.Fprint(out, "gridproxy demo: six nodes, two units, one Service whose traffic stays in its unit\n\n")
	s.out = out
	if err := s.refuse(); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "gridproxy-demo-"); err != nil {
		return fmt.Errorf("making a folder for the manifests: %w", err)
	}
	steps := []struct {
		name string
		do   func(context.Context) (string, error)
	}{
		{"tools", tools},
		{"build gridproxy (a minute when it is the first time)", s.build},
		{"make the cluster out of network namespaces", s.makeLab},
		{"write the manifests", s.writeManifests},
		{"start gridproxy run --manifests on each node", s.startAll},
	}
	for _, step := range steps {
		if err := s.step(ctx, step.name, step.do); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\n  Service %s  %s -> %d  topologyKeys [%q]\n", serviceName, s.frontend(), netns.EchoPort, netns.UnitKey)
	before, err := s.ask(ctx)
	if err != nil {
		return err
	}
	if !before.Good() {
		return conclude(out, before, netns.Verdict{})
	}
	if err := s.printRules(ctx, "bj-3"); err != nil {
		return err
	}
	if err := s.move(ctx, mover, netns.Beijing); err != nil {
		return err
	}
	after, err := s.ask(ctx)
	if err != nil {
		return err
	}
	fmt.Fprint(out, s.kept())
	return conclude(out, before, after)
}

// errLeft reports that an endpoint outside of the caller's unit answered.
var errLeft = errors.New("closure did not hold")

func conclude(out io.Writer, before, after netns.Verdict) error {
	total := netns.Verdict{Asked: before.Asked + after.Asked, Left: before.Left + after.Left, Failed: before.Failed + after.Failed}
	fmt.Fprintf(out, "\n  %d requests: %d left their unit, %d failed.\n", total.Asked, total.Left, total.Failed)
	switch {
	case total.Left > 0:
		return errLeft
	case total.Failed > 0:
		return fmt.Errorf("%d of %d requests were not answered", total.Failed, total.Asked)
	}
	return nil
}

// step says what is done, does it, and says what came of it.
func (s *stage) step(ctx context.Context, name string, do func(context.Context) (string, error)) error {
	fmt.Fprintf(s.out, "  %-54s", name)
	began := time.Now()
	result, err := do(ctx)
	if err != nil {
		fmt.Fprintln(s.out, "failed")
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintf(s.out, "%6.1f s  %s\n", time.Since(began).Seconds(), result)
	return nil
}

// tools checks what gridproxy needs on the machine. `make demo` installs it.
func tools(ctx context.Context) (string, error) {
	if os.Geteuid() != 0 {
		return "", errors.New("network namespaces need root: run `sudo make demo`")
	}
	for _, tool := range []string{"iptables-nft-save", "iptables-nft-restore", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("%s is missing: run `make demo`, or `apt-get install iptables`: %w", tool, err)
		}
	}
	version, err := exec.CommandContext(ctx, "iptables-nft", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking iptables-nft for its version: %w", err)
	}
	return string(version[:max(0, len(version)-1)]), nil
}
