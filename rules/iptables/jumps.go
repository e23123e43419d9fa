package iptables

import (
	"context"
	"fmt"
	"strings"

	"gridproxy/rules/netfilter"
)

// hooks are the jumps of ours in one built-in chain and where the kernel has them.
type hooks struct {
	rules  []netfilter.Rule // top first
	at     []int            // position in the chain, from 1; 0 = not there
	copies [][]hookCopy
	seen   int  // rules of the chain read so far
	more   bool // a jump has more copies than copies holds
}

func newHooks(rules []netfilter.Rule) *hooks {
	return &hooks{rules: rules, at: make([]int, len(rules)), copies: make([][]hookCopy, len(rules))}
}

// read takes in the next rule of the chain.
func (h *hooks) read(line netfilter.Line) {
	h.seen++
	if line.Foreign {
		return
	}
	for i, r := range h.rules {
		if r.Same(line.Rule) {
			h.readCopy(i, line.Text)
			return
		}
	}
}

func (h *hooks) lacks() bool {
	for _, at := range h.at {
		if at == 0 {
			return true
		}
	}
	return false
}

// lacksJumps reports whether a built-in chain lacks a jump.
func (ix *index) lacksJumps() bool {
	for _, h := range ix.builtin {
		if h.lacks() {
			return true
		}
	}
	return false
}

// undeclaredTargets are the chains that the jumps lead to and that do not exist.
func (ix *index) undeclaredTargets() map[place]bool {
	all := map[place]bool{}
	for p, h := range ix.builtin {
		for _, r := range h.rules {
			if to := (place{p.table, r.Jump}); !ix.declared(to) {
				all[to] = true
			}
		}
	}
	return all
}

// insertion is a rule and the position in its chain at which it is inserted.
type insertion struct {
	rule netfilter.Rule
	at   int
}

// insertions are the jumps that the chain lacks, each directly behind the one that
// stands before it in kube-proxy's order, the first on top. They are to be made in the
// order given.
func (h *hooks) insertions() []insertion {
	var all []insertion
	before := 0
	for i, r := range h.rules {
		if h.at[i] > 0 {
			before = h.at[i] + len(all)
			continue
		}
		before++
		all = append(all, insertion{rule: r, at: before})
	}
	return all
}

// insertJumps makes the jumps that the kernel lacks and returns how many that were.
func (k *kernel) insertJumps(ctx context.Context, ix *index) (int, error) {
	return k.insertMissing(ctx, ix, func(jumpAt, []string) bool { return true })
}

// insertMissing makes those of the jumps that the kernel lacks which may returns true for; it is
// given the arguments of the jump.
func (k *kernel) insertMissing(ctx context.Context, ix *index, may func(jumpAt, []string) bool) (int, error) {
	n := 0
	for _, t := range []netfilter.Table{netfilter.Filter, netfilter.NAT} {
		for _, chain := range builtinChains {
			h, ok := ix.builtin[place{t, chain}]
			if !ok {
				continue
			}
			for _, in := range h.insertions() {
				args := words(in.rule.Append(nil, k.family))
				if !may(jumpAt{place{t, chain}, in.rule.Jump}, args) {
					continue
				}
				if err := k.command.insert(ctx, t, chain, in.at, args); err != nil {
					return n, fmt.Errorf("inserting the jump to %s into %s/%s: %w", in.rule.Jump, t.String(), chain, err)
				}
				n++
			}
		}
	}
	return n, nil
}

// builtinChains are the kernel's own, in the order in which a packet may meet them.
var builtinChains = [...]string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

// words splits arguments as iptables-restore does: by spaces outside of double quotes, in
// which a backslash takes the next character as it is.
func words(args []byte) []string {
	var all []string
	var word strings.Builder
	quoted, any, escaped := false, false, false
	for _, c := range args {
		switch {
		case escaped:
			word.WriteByte(c)
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted, any = !quoted, true
		case c == ' ' && !quoted:
			if any {
				all = append(all, word.String())
				word.Reset()
				any = false
			}
		default:
			word.WriteByte(c)
			any = true
		}
	}
	if any {
		all = append(all, word.String())
	}
	return all
}
