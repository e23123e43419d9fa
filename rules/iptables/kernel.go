package iptables

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gridproxy/rules/host"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
	"gridproxy/topology/excerpt"
)

// kernel is one address family of one variant in this network namespace.
type kernel struct {
	family  netfilter.Family
	variant netfilter.Variant
	files   toolFiles // the programs as they were probed; nil = never checked again
	version version
	random  bool     // MASQUERADE has --random-fully
	command command  // for single rules and probes
	restore restorer // for everything else
	save    saver
}

// findKernel finds the tools of one family and variant, and checks them without reading rules.
// See outcomeOf for errors.
func findKernel(ctx context.Context, v netfilter.Variant, f netfilter.Family) (*kernel, error) {
	paths, files, err := resolveTools(v, f)
	if err != nil {
		return nil, err
	}
	version, err := probeVersion(ctx, command{path: paths[""]}, v)
	if err != nil {
		return nil, err
	}
	tool, err := openCommand(ctx, paths[""], f)
	if err != nil {
		return nil, err
	}
	return &kernel{
		family:  f,
		variant: v,
		files:   files,
		version: version,
		random:  version.randomFully(),
		command: tool,
		restore: restorer{path: paths["-restore"]},
		save:    saver{path: paths["-save"], variant: v, family: f},
	}, nil
}

// probe checks that the tools can read table nat. It waits for the lock as long as a restore
// does. An UnreadableError means that they work, but not with the content of the table.
func (k *kernel) probe(ctx context.Context) error {
	ctx, cancel := inTime(ctx, readTimeout)
	defer cancel()
	var output excerpt.Output
	cmd := host.Command(ctx, k.command.path, "-w", strconv.Itoa(lockSeconds), "-t", "nat", "-S", "POSTROUTING")
	cmd.Stderr = &output
	err := cmd.Run()
	if err == nil {
		return nil
	}
	err = errors.Join(err, context.Cause(ctx))
	said := excerpt.Message(strings.Join(strings.Fields(output.String()), " "))
	if k.variant == netfilter.VariantNFT && strings.Contains(said, "is incompatible") {
		return k.save.unprintable(netfilter.NAT)
	}
	return whetherMissing(fmt.Errorf("%s cannot read table nat: %w: %s", k.command.path, err, said))
}

// state reads the kernel and compares it with want. The watermark is the generation of the read. It
// is unknown if another process wrote at the same time.
func (k *kernel) state(ctx context.Context, want render.Desired) (*kernelState, watermark, error) {
	ks, err := stateAgainst(ctx, want)
	if err != nil {
		return nil, watermark{}, err
	}
	before, known := k.generation()
	if err := k.read(ctx, ks, netfilter.Filter, netfilter.NAT); err != nil {
		return nil, watermark{}, err
	}
	after, stillKnown := k.generation()
	return ks, watermark{gen: after, known: known && stillKnown && before == after}, nil
}

// read reads tables into ks. Other tables may be unreadable.
func (k *kernel) read(ctx context.Context, ks *kernelState, tables ...netfilter.Table) error {
	if k.variant == netfilter.VariantNFT {
		return k.readOnly(ctx, ks, "", tables...) // iptables-nft-save fetches every table even if asked for one
	}
	for _, t := range tables {
		if err := k.readOnly(ctx, ks, t.String(), t); err != nil {
			return err
		}
	}
	return nil
}

// readOnly reads tables into ks with one run of the tool; see saver.lines.
func (k *kernel) readOnly(ctx context.Context, ks *kernelState, only string, needed ...netfilter.Table) error {
	for line, err := range k.save.lines(ctx, only, needed...) {
		if err != nil {
			return err
		}
		ks.read(line)
	}
	return nil
}
