package iptables

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

type jumpCopy struct {
	at   int    // position in the chain, from 1
	text string // as iptables-save prints it, "-A CHAIN …"
}

// readCopy adds a copy of a jump at the position read last. With too many it only sets more.
func (s *jumpSet) readCopy(j *wantedJump, text string) {
	if j.at == 0 {
		j.at = s.seen
	}
	if len(j.copies) > copiesMax {
		s.more = true
		return
	}
	j.copies = append(j.copies, jumpCopy{s.seen, strings.Clone(text)})
}

// surplus returns all copies of jumps except the first of each.
func (s *jumpSet) surplus() []jumpCopy {
	var all []jumpCopy
	for _, j := range s.jumps {
		if len(j.copies) > 1 {
			all = append(all, j.copies[1:]...)
		}
	}
	return all
}

// removeSurplus returns the input for iptables-restore that leaves each jump once, where its
// first copy was; nil = there is no surplus. It changes s as if that were written. Deleting a
// rule by its text removes the first match. So all copies are deleted, and the jump is inserted
// again in the same transaction. Deleting by position could delete what another process has
// just inserted.
func (s *jumpSet) removeSurplus(chain string, f netfilter.Family) []byte {
	surplus := s.surplus()
	if len(surplus) == 0 {
		return nil
	}
	var text []byte
	var again []insertion
	for i := range s.jumps {
		j := &s.jumps[i]
		first := j.at
		for _, c := range surplus {
			if c.at < first {
				j.at--
			}
		}
		if len(j.copies) < 2 {
			continue
		}
		for _, c := range j.copies {
			text = append(append(append(text, "-D"...), c.text[len("-A"):]...), '\n')
		}
		j.copies = j.copies[:1]
		again = append(again, insertion{rule: j.rule, at: j.at})
	}
	s.seen -= len(surplus)
	slices.SortFunc(again, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
	for _, in := range again {
		text = append(in.rule.Append(fmt.Appendf(text, "-I %s %d ", chain, in.at), f), '\n')
	}
	return text
}

// surplusJumps returns the input for iptables-restore that removes surplus copies of all jumps,
// and its number of transactions. left means that more copies remain.
func (ks *kernelState) surplusJumps(f netfilter.Family) (text []byte, commits uint32, left bool) {
	lines := map[netfilter.Table][]byte{}
	for id, c := range ks.builtIns() {
		lines[id.Table] = append(lines[id.Table], c.jumps.removeSurplus(id.Chain, f)...)
		left = left || c.jumps.more
	}
	text, commits = renderTables(func(b *bytes.Buffer, t netfilter.Table) { b.Write(lines[t]) })
	return text, commits, left
}

func (run *syncRun) removeSurplus(ks *kernelState) error {
	text, commits, left := ks.surplusJumps(run.k.kernel.family)
	if err := run.send(text, commits); err != nil {
		return fmt.Errorf("removing surplus copies of our jumps: %w", err)
	}
	if left {
		run.k.mark = watermark{} // so that the next verify reads the kernel and continues
	}
	return nil
}

type jumpAt struct {
	from render.ChainID
	to   string
}

// insertJumps inserts the missing jumps, and returns how many. A jump that this process has
// inserted before may exist in a form that the parser does not know, for example from another
// version of the tools. Inserting it at each verify would add copies without end, so the tool
// first checks whether it exists.
func (k *familySyncer) insertJumps(ctx context.Context, ks *kernelState) (int, error) {
	if k.inserted == nil {
		k.inserted = map[jumpAt]struct{}{}
	}
	return k.kernel.insertMissing(ctx, ks, func(j jumpAt, args []string) bool {
		if _, before := k.inserted[j]; before {
			there, err := k.kernel.command.hasRule(ctx, j.from, args)
			if err == nil && there {
				k.log.Warn("not inserting a jump to our chain again: the kernel has it, in a form that gridproxy cannot parse",
					"tool", k.kernel.save.path, "chain", j.from.String(), "jump", j.to)
				return false
			}
		}
		k.inserted[j] = struct{}{}
		return true
	})
}
