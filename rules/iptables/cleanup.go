package iptables

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"gridproxy/rules/netfilter"
)

// NewCleaner makes a Backend for Cleanup alone: it opens no family, so it also cleans up where a
// family cannot be read or written.
func NewCleaner(c Config) *Backend {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Families = []netfilter.Family{netfilter.IPv4, netfilter.IPv6}
	variant := c.Variant
	if variant != netfilter.VariantLegacy {
		variant = netfilter.VariantNFT // both are cleaned, this one first
	}
	return &Backend{config: c, variant: variant, families: newFamilies[*keeper](c, variant, nil)}
}

// Cleanup removes our chains and the jumps to them, kube-proxy's too, from both families
// and from every variant whose tools are installed. Under GridNames it removes the chains with
// these names only, otherwise those of every Naming. KUBE-FIREWALL stays, because the
// kubelet relies on it, and so does every rule of others; a chain of ours that a rule of
// others leads to is left as it is and logged. Everything else that is left, or that cannot be
// read, is an error. Cleaning twice is cleaning once.
func (b *Backend) Cleanup(ctx context.Context) error {
	for _, k := range b.keepers {
		k.last, k.mark, k.rules = nil, watermark{}, [2]int{}
	}
	var errs []error
	for _, v := range []netfilter.Variant{b.variant, otherVariant(b.variant)} {
		for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
			if err := b.cleanup(ctx, v, f); err != nil {
				errs = append(errs, fmt.Errorf("cleaning up %s in iptables-%s: %w", f, v, err))
			}
		}
	}
	return errors.Join(errs...)
}

// cleanup cleans one family of one variant, and reads back whether that is done. What can be read
// is cleaned even if another table cannot.
func (b *Backend) cleanup(ctx context.Context, v netfilter.Variant, f netfilter.Family) error {
	save, errSave := exec.LookPath(toolName(v, f, "-save"))
	restore, errRestore := exec.LookPath(toolName(v, f, "-restore"))
	if errSave != nil || errRestore != nil {
		return b.leftWithoutTools(v, f)
	}
	from := saver{path: save, variant: v, family: f}
	s, err := b.look(ctx, from)
	if err != nil {
		return err
	}
	for _, r := range s.pins() {
		b.config.Log.Warn("a chain of ours stays, because a rule of somebody else leads to it",
			"family", f.String(), "variant", string(v), "chain", r.place.String(), "rule", r.text)
	}
	text := s.text()
	if len(text) == 0 {
		return b.unreadableLeft(from, s.unreadable)
	}
	if err := (restorer{path: restore, record: b.config.record}).run(ctx, text); err != nil {
		return errors.Join(err, b.unreadableLeft(from, s.unreadable))
	}
	s, err = b.look(ctx, from)
	if err != nil {
		return fmt.Errorf("reading back whether our rules are gone: %w", err)
	}
	return errors.Join(s.left(), b.unreadableLeft(from, s.unreadable))
}

// look reads what is there of ours.
func (b *Backend) look(ctx context.Context, from saver) (*sweep, error) {
	s := &sweep{grid: b.config.Names == netfilter.GridNames, chains: map[place][]string{}}
	// Without a table named, neither variant makes one that is not there.
	for line, err := range from.lines(ctx, "", netfilter.Filter, netfilter.NAT, netfilter.Mangle) {
		switch {
		case isUnreadable(err):
			s.unreadable = err
		case err != nil:
			return nil, err
		default:
			s.read(line)
		}
	}
	return s, nil
}

// sweep is what a save holds of ours.
type sweep struct {
	grid   bool               // only chains of GridNames
	chains map[place][]string // ours: the chains that each leads to
	jumps  []savedRule        // from built-in chains to ours, at place
	others []savedRule        // from other chains; place is the chain of ours led to

	unreadable error // of tables that the save does not say anything of; nil = there are none
}

func (s *sweep) ours(p place) bool {
	return netfilter.GridNames.IsOurs(p.table, p.chain) || !s.grid && netfilter.KubeNames.IsOurs(p.table, p.chain)
}

func (s *sweep) read(line netfilter.Line) {
	at := place{line.Table, strings.Clone(line.Chain)}
	if line.Kind == netfilter.LineChain && s.ours(at) {
		s.chains[at] = nil
		return
	}
	if line.Kind != netfilter.LineRule {
		return
	}
	to := place{line.Table, strings.Clone(jumpOf(line))}
	if !s.ours(to) {
		return
	}
	switch _, own := s.chains[at]; {
	case own:
		s.chains[at] = append(s.chains[at], to.chain)
	case netfilter.IsBuiltIn(at.chain) && !line.Foreign:
		s.jumps = append(s.jumps, savedRule{at, strings.Clone(line.Text)})
	default:
		s.others = append(s.others, savedRule{to, strings.Clone(line.Text)})
	}
}

// pins are the rules of others that lead to chains of ours.
func (s *sweep) pins() []savedRule { return s.others }

// staying are the chains of ours that others lead to, and those these lead to.
func (s *sweep) staying() map[place]bool {
	stay := map[place]bool{}
	var keep func(place)
	keep = func(p place) {
		if stay[p] {
			return
		}
		stay[p] = true
		for _, to := range s.chains[p] {
			keep(place{p.table, to})
		}
	}
	for _, r := range s.others {
		keep(r.place)
	}
	return stay
}

// text is the input for iptables-restore that removes it all, table by table at once.
func (s *sweep) text() []byte {
	var b bytes.Buffer
	stay := s.staying()
	chains := slices.SortedFunc(maps.Keys(s.chains), comparePlaces)
	for _, t := range []netfilter.Table{netfilter.Filter, netfilter.NAT, netfilter.Mangle} {
		var declare, remove, destroy bytes.Buffer
		for _, p := range chains {
			if p.table == t && !stay[p] {
				declare.Write(declaration(nil, p.chain))
				destroy.WriteString("-X " + p.chain + "\n")
			}
		}
		for _, r := range s.jumps {
			if r.table == t {
				remove.WriteString("-D" + strings.TrimPrefix(r.text, "-A") + "\n")
			}
		}
		if cmp.Or(declare.Len(), remove.Len()) > 0 {
			b.WriteString("*" + t.String() + "\n")
			for _, part := range []*bytes.Buffer{&remove, &declare, &destroy} {
				b.Write(part.Bytes())
			}
			b.WriteString("COMMIT\n")
		}
	}
	return b.Bytes()
}
