package daemon

import (
	"log/slog"
	"time"

	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/localdns"
	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/gridproxy/otherproxy"
	"gridproxy/rules"
	"gridproxy/rules/syncer"
)

// reasonOtherProxy is the reason of the Event on the Node.
const reasonOtherProxy = "OtherServiceProxy"

// otherProxyObserver reports when another service proxy is suspected to write into this node's
// rules, and when that has ended. Package otherproxy decides it.
type otherProxyObserver struct {
	log    *slog.Logger
	found  func() rules.OtherWrites     // by the last run
	record func(reason, message string) // sends an Event on the Node
	limits otherproxy.Limits
	state  otherproxy.State
}

// Synced adds what a run found. It reports a suspicion, with an Event, and logs its end.
func (o *otherProxyObserver) Synced(r syncer.Result) {
	run := otherproxy.Run{End: r.End}
	if r.Backends != nil && !r.Unchanged { // else the kernel was not read
		run.Others = o.found()
	}
	before := o.state.Suspected
	o.state = otherproxy.Next(o.state, run, o.limits)
	switch {
	case o.state.Suspected && !before:
		message := o.state.Evidence.Message()
		o.log.Error(message, "reason", reasonOtherProxy)
		o.record(reasonOtherProxy, message)
	case before && !o.state.Suspected:
		o.log.Info("no other service proxy has written into this node's rules for a long time", "quiet", o.limits.Quiet)
	}
}

// now returns what the previous runs have shown.
func (o *otherProxyObserver) now() otherproxy.State { return o.state }

// lookForOtherProxy sets d.otherProxy. It does nothing for a shadow, which repairs nothing.
func (d *daemon) lookForOtherProxy(o options.Options, kernel driver.Running) {
	if o.Shadow {
		return
	}
	d.otherProxy = &otherProxyObserver{
		log: d.log, found: kernel.Findings.OtherWrites, record: d.events.onNode, limits: otherproxy.NewLimits(o.OtherProxy, o.VerifyPeriod),
	}
}

// counts returns what metrics ask of the driver and of the daemon.
func (d *daemon) counts(kernel driver.Driver) metrics.Kernel {
	counts := kernel.Counts()
	if d.otherProxy != nil {
		counts.OtherProxy = func() bool { return d.otherProxy.now().Suspected }
	}
	on := d.source.On()
	if on.APIServer {
		counts.Held = d.source.Holding
		counts.NodeWatches = func() metrics.NodeWatches {
			units, all := d.source.NodeWatches()
			return metrics.NodeWatches{Units: units, All: all}
		}
	}
	if on.Remembered {
		counts.FromDisk = d.source.InUse
	}
	if on.Grace {
		counts.HeldEndpoints = func() int { return len(d.source.Held()) }
	}
	if on.Prober {
		counts.APIProxies = d.source.Answers
	}
	if d.dns != nil {
		counts.DNS = func() metrics.DNS { return countDNS(d.dns) }
	}
	if d.saver != nil {
		counts.Saved = func() metrics.Saved {
			kept := d.saver.Stats()
			return metrics.Saved{Writes: kept.Writes, Bytes: kept.Bytes, Last: kept.Written, Failing: kept.Err != nil}
		}
	}
	return counts
}

// countDNS returns what the metrics of DNS show, without the paths that no query takes.
func countDNS(n *localdns.Node) metrics.DNS {
	names := n.Names()
	now := metrics.DNS{Services: names.Services, Collisions: names.Collisions, Unnamed: names.Unnamed, Warnings: names.Warnings}
	for _, p := range n.Paths() {
		if !p.Unasked {
			now.Paths = append(now.Paths, metrics.DNSPath{Address: p.Addr.String(), Local: p.Local, Switches: p.Switches, Wait: p.Wait.Seconds()})
		}
	}
	for _, c := range n.Clients() {
		now.Servers++
		if !c.Behind.IsZero() {
			now.Lag = max(now.Lag, time.Since(c.Behind).Seconds())
		}
	}
	return now
}
