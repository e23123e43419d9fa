package node

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/wait"
)

// cutOff is the last part of a soak, with a daemon that saves its state. In each round Services and
// Nodes change at random, the API server goes away, and the machine is rebooted or the daemon is
// killed. The rules must be those from before until the API server is back, so that closure holds,
// and those of a new daemon then.
func (s *soak) cutOff(t *testing.T, length time.Duration) {
	t.Helper()
	flags := []string{"--verify-period", "2s", "--state-dir", t.TempDir()}
	must(s.t, wait.Usual.Do(s.ctx, s.daemon.Stop))
	s.start(flags...)
	rounds := 0
	// real time: GRIDPROXY_SOAK is how long it runs
	for began := time.Now(); rounds < 1 || time.Since(began) < length; rounds++ {
		s.changeMany()
		s.wantClean(t, "changes before a cut")
		before := s.sortedRules()
		s.API.Stop()
		must(s.t, wait.Usual.Do(s.ctx, s.daemon.Stop))
		s.reboot()
		s.start(flags...)
		s.wantSame(before, "a reboot without API server")
		if rounds%2 == 1 { // which waits for the API server for 10 s
			s.daemon.Kill()
			s.start(flags...)
			s.wantSame(before, "the daemon was killed without API server")
		}
		must(s.t, wait.Usual.Do(s.ctx, s.API.Start))
		s.changeMany()
		s.wantClean(t, "the API server was back")
	}
	t.Logf("%d reboots without API server", rounds)
}

// changeMany changes Services, and the unit of a Node.
func (s *soak) changeMany() {
	for range 10 {
		s.change()
	}
	s.changeSteady()
	s.label("gz-2", []string{"beijing", "guangzhou"}[s.random.IntN(2)])
}

func (s *soak) label(node, unit string) {
	s.t.Helper()
	s.patch("node", node, map[string]any{"metadata": map[string]any{"labels": map[string]any{"location": unit}}})
}

// reboot removes what a machine does not have after a reboot.
func (s *soak) reboot() {
	s.t.Helper()
	_, err := s.node.Run(s.ctx, nil, "nft", "flush", "ruleset")
	must(s.t, err)
	if rules := s.sortedRules(); len(rules) > 0 {
		s.t.Fatalf("rules after a reboot: %q", rules)
	}
}

// ruleComment is that of a rule. It is left out of rules that were written while there were many.
var ruleComment = regexp.MustCompile(` -m comment --comment ("[^"]*"|\S+)`)

// sortedRules are the node's, as serviceRules has them.
func (s *soak) sortedRules() []string { s.t.Helper(); return serviceRules(s.rules()) }

// serviceRules are the rules of Services in a save, sorted and without comments. The order of
// chains is another after a reboot. A chain in which a daemon tries rules at its start leads
// nowhere.
func serviceRules(save string) []string {
	var rules []string
	for line := range strings.Lines(save) {
		if strings.Contains(line, "KUBE-S") && !strings.Contains(line, "KUBE-SCRATCH") {
			rules = append(rules, ruleComment.ReplaceAllString(strings.TrimSpace(line), ""))
		}
	}
	slices.Sort(rules)
	return rules
}

// wantSame waits until the rules are those from before.
func (s *soak) wantSame(before []string, after string) {
	s.t.Helper()
	wait.Until(s.t, "the rules are those from before "+after, func() error {
		now := s.sortedRules()
		return wait.Check(slices.Equal(now, before), "%d rules instead of %d, such as %q", len(now), len(before), firstOther(before, now))
	})
}

// firstOther is the first line that only one list has.
func firstOther(a, b []string) string {
	for _, lists := range [][2][]string{{a, b}, {b, a}} {
		for _, line := range lists[0] {
			if !slices.Contains(lists[1], line) {
				return line
			}
		}
	}
	return ""
}
