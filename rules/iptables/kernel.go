package iptables

import (
	"context"
	"fmt"

	"github.com/coreos/go-iptables/iptables"
)

// kernel is one address family of one variant of this network namespace's iptables.
type kernel struct {
	family  Family
	variant Variant
	ipt     *iptables.IPTables // single rules and probes
	restore restorer           // everything that is more than one rule
	save    saver
}

// openKernel finds the tools of one family and variant and checks that they work here.
func openKernel(v Variant, f Family) (*kernel, error) {
	paths := map[string]string{}
	for _, suffix := range []string{"", "-restore", "-save"} {
		path, err := findTool(v.tool(f, suffix))
		if err != nil {
			return nil, err
		}
		paths[suffix] = path
	}
	ipt, err := iptables.New(iptables.IPFamily(f.protocol()), iptables.Path(paths[""]), iptables.Timeout(lockSeconds))
	if err != nil {
		return nil, fmt.Errorf("probing %s: %w", paths[""], err)
	}
	if _, err := ipt.List("nat", "POSTROUTING"); err != nil {
		return nil, fmt.Errorf("%s cannot read table nat (is the kernel's support for it missing or disabled?): %w", paths[""], err)
	}
	return &kernel{
		family:  f,
		variant: v,
		ipt:     ipt,
		restore: restorer{path: paths["-restore"]},
		save:    saver{path: paths["-save"], family: f},
	}, nil
}

// protocol is the family as the library has it.
func (f Family) protocol() iptables.Protocol {
	if f == IPv6 {
		return iptables.ProtocolIPv6
	}
	return iptables.ProtocolIPv4
}

// generation is the kernel's, where this variant has one.
func (k *kernel) generation() (gen uint32, known bool) {
	if k.variant != VariantNFT {
		return 0, false
	}
	gen, err := generation()
	return gen, err == nil
}

// compare reads the kernel and holds it against w. The watermark is where the kernel was
// while it was read; it is unknown if somebody wrote meanwhile.
func (k *kernel) compare(ctx context.Context, w written) (*index, watermark, error) {
	ix := newIndex(w)
	before, known := k.generation()
	if err := k.read(ctx, ix, Filter, NAT); err != nil {
		return nil, watermark{}, err
	}
	after, stillKnown := k.generation()
	return ix, watermark{gen: after, known: known && stillKnown && before == after}, nil
}

// read lets ix take in tables.
func (k *kernel) read(ctx context.Context, ix *index, tables ...Table) error {
	var names []string
	for _, t := range tables {
		names = append(names, t.String())
	}
	if k.variant == VariantNFT {
		names = []string{""} // iptables-nft-save fetches every table for the sake of one
	}
	for _, name := range names {
		for line, err := range k.save.lines(ctx, name) {
			if err != nil {
				return err
			}
			ix.read(line)
		}
	}
	return nil
}

// String is the family as people say it.
func (f Family) String() string {
	if f == IPv6 {
		return "IPv6"
	}
	return "IPv4"
}
