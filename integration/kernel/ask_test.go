package kernel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gridproxy/integration/lab"
)

// The networks that echo servers answer on.
func networks() []string { return []string{"tcp", "udp"} }

// How long one question may take; and how long silence must last to count as such. A
// refused TCP connection may take a second: when the answer comes while the sender is
// still sending, the kernel heeds it only after the first retransmission.
const (
	answerDeadline = 10 * time.Second
	silence        = 400 * time.Millisecond
)

// ask asks once, in a connection or flow of its own.
func ask(ctx context.Context, from *lab.Namespace, network string, to netip.AddrPort) (lab.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, answerDeadline)
	defer cancel()
	if network == "udp" {
		return from.AskUDP(ctx, to)
	}
	return from.Fetch(ctx, to)
}

// rounds is how often each of n endpoints is asked for on average. Missing one of two by
// chance then has a probability of 2^-39.
func rounds(n int) int { return 20 * n }

// who asks until it has heard from all that are wanted, or often enough to know that it
// will not. An answer from anybody else, or none, is an error.
func who(ctx context.Context, from *lab.Namespace, network string, to netip.AddrPort, want []*lab.Pod) error {
	heard := map[string]bool{}
	for range rounds(len(want)) {
		a, err := ask(ctx, from, network, to)
		if err != nil {
			return fmt.Errorf("%s from %s to %s, want an answer of %s: %w", network, from.Name, to, names(want), err)
		}
		if !slices.Contains(names(want), a.Pod) {
			return fmt.Errorf("%s from %s to %s: %s answered, want one of %s", network, from.Name, to, a.Pod, names(want))
		}
		heard[a.Pod] = true
		if len(heard) == len(want) {
			return nil
		}
	}
	return fmt.Errorf("%s from %s to %s: heard only %v, want all of %s", network, from.Name, to, heard, names(want))
}

// strictly asks a few times more: from now on nobody else may answer.
func strictly(ctx context.Context, from *lab.Namespace, network string, to netip.AddrPort, want []*lab.Pod) error {
	for range 2 * rounds(1) {
		if a, err := ask(ctx, from, network, to); err != nil || !slices.Contains(names(want), a.Pod) {
			return fmt.Errorf("%s from %s to %s: %q answered (%w), want one of %s", network, from.Name, to, a.Pod, err, names(want))
		}
	}
	return nil
}

func names(pods []*lab.Pod) []string {
	var all []string
	for _, p := range pods {
		all = append(all, p.Name)
	}
	return all
}

// reaches waits until exactly these Pods answer, and then insists on it.
func (w *world) reaches(from *lab.Namespace, network string, to netip.AddrPort, want ...*lab.Pod) {
	w.t.Helper()
	w.eventually(func(ctx context.Context) error { return who(ctx, from, network, to, want) })
	w.must(strictly(w.t.Context(), from, network, to, want))
}

// refused waits until the answer is "connection refused": neither a timeout nor anything
// else.
func (w *world) refused(from *lab.Namespace, network string, to netip.AddrPort) {
	w.t.Helper()
	w.eventually(func(ctx context.Context) error {
		a, err := ask(ctx, from, network, to)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("%s from %s to %s: %q answered (%w), want it refused", network, from.Name, to, a.Pod, err)
		}
		return nil
	})
}

// dropped waits until there is no answer at all and a rule of ours on the node has dropped
// the packets.
func (w *world) dropped(at string, from *lab.Namespace, network string, to netip.AddrPort) {
	w.t.Helper()
	f := family(to)
	w.eventually(func(ctx context.Context) error {
		before, err := w.drops(ctx, at, f)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, silence)
		defer cancel()
		var a lab.Answer
		if network == "udp" {
			a, err = from.AskUDP(ctx, to)
		} else {
			a, err = from.Fetch(ctx, to)
		}
		if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
			return fmt.Errorf("%s from %s to %s: %q answered (%w), want silence", network, from.Name, to, a.Pod, err)
		}
		after, err := w.drops(w.t.Context(), at, f)
		if err == nil && after <= before {
			err = fmt.Errorf("%s from %s to %s: silence, yet no rule on %s dropped anything", network, from.Name, to, at)
		}
		return err
	})
}

// drops is how many packets our rules on a node have dropped.
func (w *world) drops(ctx context.Context, node string, f lab.Family) (int, error) {
	save, err := w.Lab.Node(node).Save(ctx, w.tool(f, "-save"), "-c", "-t", "filter")
	if err != nil {
		return 0, err
	}
	total := 0
	for line := range strings.Lines(save) {
		if !strings.HasSuffix(strings.TrimSpace(line), "-j DROP") || !strings.Contains(line, "-A KUBE-") {
			continue
		}
		count, _, _ := strings.Cut(strings.TrimPrefix(line, "["), ":")
		n, err := strconv.Atoi(count)
		if err != nil {
			return 0, fmt.Errorf("reading the counters of %q: %w", line, err)
		}
		total += n
	}
	return total, nil
}

func family(a netip.AddrPort) lab.Family {
	if a.Addr().Is4() {
		return lab.IPv4
	}
	return lab.IPv6
}
