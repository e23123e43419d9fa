package kernel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
)

// refusal makes this world's daemons see a kernel that refuses some rules; see need.Refusal for
// why that is a fake.
func (w *world) refusal() (*need.Refusal, string) {
	w.t.Helper()
	r, err := need.NewRefusal(w.t.TempDir())
	w.Must(err)
	through, err := r.Program(w.Program)
	w.Must(err)
	return r, through
}

// shown wants texts on the daemon's page of metrics.
func (w *world) shown(node string, texts ...string) {
	w.t.Helper()
	wait.Until(w.t, "/metrics of "+node+" has the texts", func() error {
		page, err := w.Daemons[node].Metrics(w.t.Context(), "/metrics")
		if err != nil {
			return err
		}
		var errs []error
		for _, text := range texts {
			if !strings.Contains(string(page.Text), "\n"+text+"\n") {
				errs = append(errs, fmt.Errorf("/metrics lacks %q", text))
			}
		}
		return errors.Join(errs...)
	})
}

// explained wants a text in what explain says on a node about a Service.
func (w *world) explained(node, service, text string) {
	w.t.Helper()
	w.holds(func(ctx context.Context) error {
		out, err := w.Lab.Node(node).Run(ctx, nil, "env", "NODE_NAME="+node, w.Program, "explain", service,
			"--node-name", node, "--manifests", w.Dir, "--iptables-variant", w.backend.variant)
		return errors.Join(err, wait.Check(strings.Contains(string(out), text), "explain lacks %q:\n%s", text, out))
	})
}

// ends waits until this flow is refused, also by the endpoint that it had. Silence would not do: a
// datagram may be lost.
func (u *flow) ends() {
	u.w.t.Helper()
	wait.Until(u.w.t, fmt.Sprintf("the flow is refused, %s", u.f), func() error {
		pod, err := u.ask(u.w.t.Context())
		return wait.Check(errors.Is(err, syscall.ECONNREFUSED), "%q answered (%w)", pod, err)
	})
}

// One Service that the kernel refuses neither keeps another's rules from changing, nor keeps an
// endpoint that closure has shut out: it is refused at all its frontends until the kernel takes it.
func TestRefusedServiceIsQuarantined(t *testing.T) {
	eachOf(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-2", "gz-2")
		refusal, through := w.refusal()
		bad, good := newExposed("bad", 40), netns.NewClosedService("good", 41)
		netns.Confine(bad, "")
		netns.Confine(good, "")
		both := w.endpoints("bj-1", "gz-2")
		w.Serve(bad, both...)
		w.Serve(good, both...)
		w.Must(w.RouteServicesVia(w.Lab.Node("bj-2")))
		w.runProgram(through, []string{"bj-2"}, detect()...)
		for _, f := range netns.Families() {
			w.reaches(w.Client("bj-2").Namespace, "udp", netns.VIP(f, 40), both...)
			w.reaches(w.Client("bj-2").Namespace, "tcp", netns.VIP(f, 41), both...)
		}

		var flows []*flow
		for _, f := range netns.Families() {
			for range 8 { // so that some are at the endpoint of the unit
				u := w.newFlow(w.Client("bj-2").Namespace, f, 40)
				u.movesTo(both...)
				flows = append(flows, u)
			}
		}

		w.Must(refusal.Refuse(`"default/bad:tcp -> `, `"default/bad:udp -> `))
		netns.Confine(bad, `["location"]`)
		netns.Confine(good, `["location"]`)
		w.apply()
		for _, f := range netns.Families() {
			w.reaches(w.Client("bj-2").Namespace, "tcp", netns.VIP(f, 41), w.Endpoint("bj-1"))
		}
		w.shown("bj-2", `gridproxy_quarantined_services{ip_family="IPv4"} 2`, `gridproxy_quarantined_services{ip_family="IPv6"} 2`)
		w.changing = false
		for _, u := range flows {
			u.ends()
		}
		for f, network := range familiesAndNetworks() {
			w.refused(w.Lab.Node("bj-2").Namespace, network, netns.VIP(f, 40), w.nodePortOn("bj-2", f))
			for _, from := range []*netns.Namespace{w.Client("bj-2").Namespace, w.Outside} {
				w.refused(from, network, netns.VIP(f, 40), netns.External(f, 40), netns.Balancer(f, 40), w.nodePortOn("bj-2", f))
			}
		}

		w.explained("bj-2", "bad", "default/bad:tcp is quarantined here and refused at all its addresses")
		w.Must(refusal.Refuse())
		w.shown("bj-2", `gridproxy_quarantined_services{ip_family="IPv4"} 0`, `gridproxy_quarantined_services{ip_family="IPv6"} 0`)
		for f, network := range familiesAndNetworks() {
			w.reaches(w.Client("bj-2").Namespace, network, netns.VIP(f, 40), w.Endpoint("bj-1"))
			w.reaches(w.Outside, network, w.nodePortOn("bj-2", f), w.Endpoint("bj-1"))
		}
		for _, u := range flows {
			u.movesTo(w.Endpoint("bj-1"))
		}
	}, nft, legacy)
}
