package iptables

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gridproxy/rules/netfilter"
)

// mostCopies is how many copies of one jump are removed at once; more are left for the next verify.
const mostCopies = 500

// hookCopy is one copy of a jump of ours.
type hookCopy struct {
	at   int    // position in the chain, from 1
	text string // as iptables-save prints it, "-A CHAIN …"
}

// readCopy takes in a jump that is at the position read last.
func (h *hooks) readCopy(i int, text string) {
	if h.at[i] == 0 {
		h.at[i] = h.seen
	}
	if len(h.copies[i]) > mostCopies {
		h.more = true
		return
	}
	h.copies[i] = append(h.copies[i], hookCopy{h.seen, strings.Clone(text)})
}

// surplus are all copies of jumps but the first of each.
func (h *hooks) surplus() []hookCopy {
	var all []hookCopy
	for _, copies := range h.copies {
		if len(copies) > 1 {
			all = append(all, copies[1:]...)
		}
	}
	return all
}

// removeSurplus is what iptables-restore has to do in the chain so that each jump is there once,
// where its first copy was. A rule is deleted by its text, which takes the first one with this
// text: so all copies go, and the jump is inserted again in the same transaction. Deleting by
// position could delete what another process has just inserted there.
func (h *hooks) removeSurplus(chain string, f netfilter.Family) []byte {
	surplus := h.surplus()
	if len(surplus) == 0 {
		return nil
	}
	var text []byte
	var again []insertion
	for i, r := range h.rules {
		first := h.at[i]
		for _, c := range surplus {
			if c.at < first {
				h.at[i]--
			}
		}
		if len(h.copies[i]) < 2 {
			continue
		}
		for _, c := range h.copies[i] {
			text = append(append(append(text, "-D"...), c.text[len("-A"):]...), '\n')
		}
		h.copies[i] = h.copies[i][:1]
		again = append(again, insertion{rule: r, at: h.at[i]})
	}
	h.seen -= len(surplus)
	slices.SortFunc(again, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
	for _, in := range again {
		text = append(in.rule.Append(fmt.Appendf(text, "-I %s %d ", chain, in.at), f), '\n')
	}
	return text
}

// removeSurplus is the input for iptables-restore that removes the surplus copies of all jumps, and
// the number of transactions that it takes. left = there are more copies than that.
func (ix *index) removeSurplus(f netfilter.Family) (text []byte, commits uint32, left bool) {
	var b bytes.Buffer
	for t := range netfilter.Table(len(ix.rules)) {
		var lines []byte
		for _, chain := range builtinChains {
			if h, ok := ix.builtin[place{t, chain}]; ok {
				lines = append(lines, h.removeSurplus(chain, f)...)
				left = left || h.more
			}
		}
		if len(lines) > 0 {
			fmt.Fprintf(&b, "*%s\n%sCOMMIT\n", t, lines)
			commits++
		}
	}
	return b.Bytes(), commits, left
}

// removeSurplus removes copies of our jumps from built-in chains.
func (w *writing) removeSurplus(ix *index) error {
	text, commits, left := ix.removeSurplus(w.k.kernel.family)
	if err := w.send(text, commits); err != nil {
		return fmt.Errorf("removing surplus copies of our jumps: %w", err)
	}
	if left {
		w.k.mark = watermark{} // for the next verify to read the kernel and go on
	}
	return nil
}

// jumpAt is a jump from a built-in chain.
type jumpAt struct {
	from place
	to   string
}

// insertJumps is kernel.insertJumps. A jump that this process has inserted before and that seems
// to be missing again may be there in a form that the reader of rules does not understand, as of
// another version of the tools: inserting it at each verify would add copies without end. So the
// tool is asked first whether the chain has it.
func (k *keeper) insertJumps(ctx context.Context, ix *index) (int, error) {
	if k.inserted == nil {
		k.inserted = map[jumpAt]struct{}{}
	}
	return k.kernel.insertMissing(ctx, ix, func(j jumpAt, args []string) bool {
		if _, before := k.inserted[j]; before {
			there, err := k.kernel.command.hasRule(ctx, j.from, args)
			if err == nil && there {
				k.log.Warn("a jump to our chain is not inserted again: the kernel has it, in a form that is not understood",
					"tool", k.kernel.save.path, "chain", j.from.String(), "jump", j.to)
				return false
			}
		}
		k.inserted[j] = struct{}{}
		return true
	})
}
