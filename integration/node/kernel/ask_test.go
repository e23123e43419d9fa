package kernel

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
)

// The networks that echo servers answer on.
func networks() []string { return []string{"tcp", "udp"} }

// familiesAndNetworks yields each network of each family.
func familiesAndNetworks() iter.Seq2[netns.Family, string] {
	return func(yield func(netns.Family, string) bool) {
		for _, f := range netns.Families() {
			for _, network := range networks() {
				if !yield(f, network) {
					return
				}
			}
		}
	}
}

// How long one question may take; and how long silence must last to count as such. A
// refused TCP connection may take a second: when the answer comes while the sender is
// still sending, the kernel heeds it only after the first retransmission.
const (
	answerDeadline = 10 * time.Second
	silence        = 400 * time.Millisecond
)

// ask asks once, in a connection or flow of its own.
func ask(ctx context.Context, from *netns.Namespace, network string, to netip.AddrPort) (netns.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, answerDeadline)
	defer cancel()
	if network == "udp" {
		return from.AskUDP(ctx, to)
	}
	return from.Fetch(ctx, to)
}

// who asks many times: all that are wanted must answer, and no other Pod ever.
func (w *world) who(ctx context.Context, from *netns.Namespace, network string, to netip.AddrPort, want []*netns.Pod) error {
	err := w.hear(netns.Names(want), func() (string, error) {
		a, err := ask(ctx, from, network, to)
		return a.Pod, err
	})
	if err != nil {
		return fmt.Errorf("%s from %s to %s: %w", network, from.Name, to, err)
	}
	return nil
}

// most is how often to ask at most where n endpoints should answer. That one of them is never
// chosen, though each may be, happens once in a million.
func most(n int) int { return 20 * n }

// rounds is how often to ask at least where n endpoints should answer, so that one more endpoint
// that answers besides them is noticed: always where endpoints take turns, otherwise with one miss
// in a million; in a virtual machine, where a question takes ten times as long, with one in a
// thousand, since the same questions are asked here too.
func (w *world) rounds(n int) int {
	switch {
	case w.backend.mode == modeIPVS:
		return 4 * n
	case guest():
		return 10 * n
	}
	return most(n)
}

// hear asks often enough: each answer must be of one of those wanted, and all of them must be heard.
func (w *world) hear(want []string, ask func() (string, error)) error {
	return netns.Hear(want, w.rounds(len(want)), most(len(want)), ask)
}

// reaches wants exactly these Pods to answer.
func (w *world) reaches(from *netns.Namespace, network string, to netip.AddrPort, want ...*netns.Pod) {
	w.t.Helper()
	w.holds(func(ctx context.Context) error { return w.who(ctx, from, network, to, want) })
}

// refused wants to be told so at once: neither a timeout nor anything else. All addresses
// are asked at the same time.
func (w *world) refused(from *netns.Namespace, network string, to ...netip.AddrPort) {
	w.t.Helper()
	w.holds(func(ctx context.Context) error {
		return wait.Each(to, func(a netip.AddrPort) error { return w.refuses(ctx, from, network, a) })
	})
}

// refuses asks once. A datagram that is rejected on the node that sends it fails with EPERM
// already as it is sent.
func (w *world) refuses(ctx context.Context, from *netns.Namespace, network string, to netip.AddrPort) error {
	a, err := ask(ctx, from, network, to)
	switch {
	case err == nil:
		return fmt.Errorf("%s from %s to %s: %w: %s, want it refused", network, from.Name, to, netns.ErrOther, a.Pod)
	case network == "udp" && w.Lab.Node(from.Name) != nil && errors.Is(err, syscall.EPERM):
		return nil
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s from %s to %s, want it refused: %w", network, from.Name, to, err)
	}
	return nil
}

// dropped wants no answer at all, and a rule of ours on the node to have dropped the
// packets.
func (w *world) dropped(at string, from *netns.Namespace, network string, to netip.AddrPort) {
	w.t.Helper()
	f := netns.FamilyOf(to.Addr())
	w.holds(func(ctx context.Context) error {
		before, err := w.drops(ctx, at, f)
		if err != nil {
			return err
		}
		if err := silent(ctx, from, network, to); err != nil {
			return err
		}
		after, err := w.drops(ctx, at, f)
		return errors.Join(err, wait.Check(after > before, "%s from %s to %s: silence, yet no rule on %s dropped anything", network, from.Name, to, at))
	})
}

func silent(ctx context.Context, from *netns.Namespace, network string, to netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	a, err := ask(ctx, from, network, to)
	if err == nil {
		return fmt.Errorf("%s from %s to %s: %s answered, want silence", network, from.Name, to, a.Pod)
	}
	if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
		return fmt.Errorf("%s from %s to %s, want silence: %w", network, from.Name, to, err)
	}
	return nil
}

func (w *world) drops(ctx context.Context, node string, f netns.Family) (int, error) {
	save, err := w.Lab.Node(node).Save(ctx, w.Tool(f, "-save"), "-c", "-t", "filter")
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
