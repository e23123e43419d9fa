package status

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/cmd/table"
)

// WriteTable writes the Status for people.
func (s Status) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s:\t%s\n", name, fmt.Sprintf(format, args...))
	}
	d := s.Daemon
	row("Healthy", "%s", table.State(w, yesOrNo(s.Healthy)))
	row("Node", "%s%s", s.Node.Name, s.nodeNote())
	row("Version", "%s, commit %s, started %s", d.Version, d.Commit, s.ago(d.Started))
	row("Mode", "%s (iptables-%s)%s", d.Mode, d.Variant, map[bool]string{true: ", shadow: writes nothing"}[d.Shadow])
	for _, f := range s.Families {
		row(f.Name, "%s", s.describeFamily(f))
	}
	row("Cluster", "%s", s.describeKnowledge())
	for _, p := range s.Knowledge.APIProxies {
		row("API proxy", "%s", p.describe())
	}
	for _, p := range s.DNS {
		row("DNS", "%s", s.describeDNS(p))
	}
	row("Sync", "%s", s.describeSync())
	row("Last sync", "%s", s.describeRun(s.LastSync))
	row("Last verification", "%s", s.describeRun(s.LastVerification))
	s.writeServices(t)
	if s.Drift.Repaired == 0 {
		row("Repaired", "0 chains since the start")
	} else {
		row("Repaired", "%d chains since the start, last %s", s.Drift.Repaired, s.ago(s.Drift.Last))
	}
	if s.OtherProxy != nil {
		row("Other proxy", "suspected since %s", s.ago(s.OtherProxy.Since))
	} else {
		row("Other proxy", "none found")
	}
	return t.Flush()
}

// writeServices counts Services, and names the first ones with the next command.
func (s Status) writeServices(t io.Writer) {
	c := s.Services
	fmt.Fprintf(t, "Services:\t%d: %d open, %d closed\n", c.All, c.Open, c.Closed)
	fmt.Fprintf(t, "Refused here:\t%d closed without an endpoint that this node may use\n", c.Refused)
	next := func(names []string, number int) {
		if len(names) > 0 {
			fmt.Fprintf(t, "\t%s; gridproxy explain %s says why\n", listed(names, number), names[0])
		}
	}
	next(s.FirstRefused, c.Refused)
	fmt.Fprintf(t, "Malformed:\t%d with topology annotations that cannot be read\n", c.Malformed)
	next(s.FirstMalformed, c.Malformed)
	fmt.Fprintf(t, "Quarantined:\t%d whose rules the kernel refuses\n", c.Quarantined)
	for _, q := range s.Quarantined {
		fmt.Fprintf(t, "\t%s port %s of %s: %s\n", q.Service, cmp.Or(q.Port, "-"), q.Family, q.Reason)
	}
	if len(s.Quarantined) > 0 {
		fmt.Fprintf(t, "\tgridproxy explain %s says more\n", s.Quarantined[0].Service)
	}
	if s.UnopenedPorts > 0 {
		fmt.Fprintf(t, "Health ports:\t%d not open, so that load balancers do not use this node\n", s.UnopenedPorts)
	}
	for _, p := range s.FirstUnopened {
		fmt.Fprintf(t, "\t%s at %s: %s; ss -Hltnp 'sport = :%d' on the Node names the program\n", p.Service, p.Address, p.Reason, p.Port)
	}
}

// listed joins the first of a number of names.
func listed(names []string, number int) string {
	text := strings.Join(names, ", ")
	if more := number - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func (s Status) nodeNote() string {
	switch {
	case s.LastSync != nil && !s.Node.Known:
		return " (there is no such Node)"
	case !s.Node.Eligible:
		return " (about to be removed: load balancers must not send to it)"
	default:
		return ""
	}
}

// ago returns how long ago t was, rounded for people, or "never" for the zero time.
func (s Status) ago(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return s.age(t).String() + " ago"
}

func (s Status) describeFamily(f Family) string {
	text := f.State
	switch f.State {
	case metrics.StateSynced:
		text = "in sync, written " + s.ago(f.Synced)
	case metrics.StateFailed:
		text = fmt.Sprintf("failing, last written %s: %s", s.ago(f.Synced), f.Reason)
	case metrics.StateLeftOut:
		text = "not used: " + f.Reason
	case StateStarting:
		text = "not written yet"
	}
	if !f.Healthy {
		text += " (a change has waited for too long)"
	}
	return text
}

func (s Status) describeKnowledge() string {
	k := s.Knowledge
	text := "taken up from the " + s.Daemon.Source + " " + s.ago(k.Snapshot)
	switch {
	case !k.Saved.IsZero():
		text = "saved on disk " + s.ago(k.Saved) + ", in force until the " + s.Daemon.Source + " has been read"
	case k.Snapshot.IsZero():
		text = "not read from the " + s.Daemon.Source + " yet"
	}
	switch {
	case !k.LostSince.IsZero():
		text += fmt.Sprintf(", not readable for %s: %s", s.age(k.LostSince), k.LostReason)
	case s.Daemon.Source == SourceAPIServer && !k.Snapshot.IsZero():
		text += ", connection up"
	}
	if k.HeldEndpoints > 0 {
		text += fmt.Sprintf(", %d endpoints used although they turned not ready when it was back", k.HeldEndpoints)
	}
	if k.HeldBack {
		text += ", a new list is held back"
	}
	return text
}

func (p APIProxy) describe() string {
	if p.Answers {
		return p.Address + " answers: default/kubernetes leads to it"
	}
	return p.Address + " does not answer: default/kubernetes leads to the API servers"
}

func (s Status) describeDNS(p DNSPath) string {
	switch {
	case p.Local && p.Reason == "":
		return fmt.Sprintf("queries go to grid-dns at %s for %s", p.Address, s.age(p.Since))
	case p.Local:
		return fmt.Sprintf("queries go to grid-dns at %s alone, because of --dns-when-away refuse, although %s", p.Address, p.Reason)
	case p.Unasked:
		return fmt.Sprintf("grid-dns at %s is not asked: %s", p.Address, p.Reason)
	case p.ReturnWaitSeconds > 0:
		return fmt.Sprintf("queries go to the DNS of the cluster for %s, and back to grid-dns at %s in %s at the earliest: %s",
			s.age(p.Since), p.Address, time.Duration(p.ReturnWaitSeconds*float64(time.Second)), p.Reason)
	default:
		return fmt.Sprintf("queries go to the DNS of the cluster for %s, not to grid-dns at %s: %s", s.age(p.Since), p.Address, p.Reason)
	}
}

func (s Status) describeSync() string {
	switch {
	case s.Sync.Hangs:
		return "hangs, last step " + s.ago(s.Sync.LastStep)
	case !s.Sync.LastStep.IsZero():
		return "in progress, last step " + s.ago(s.Sync.LastStep)
	case !s.Sync.Pending.IsZero():
		return "a change has waited for " + s.age(s.Sync.Pending).String()
	default:
		return "at rest, no change waits"
	}
}

func (s Status) describeRun(r *Run) string {
	if r == nil {
		return "none yet"
	}
	took := time.Duration(r.TookSeconds * float64(time.Second)).Round(time.Millisecond)
	text := fmt.Sprintf("%s, took %s, ", s.ago(r.End), took)
	switch {
	case r.Error != "":
		return text + "failed: " + r.Error
	case r.Repaired > 0:
		return text + fmt.Sprintf("repaired %d chains", r.Repaired)
	case r.ReadBack:
		return text + "good, rules read back"
	default:
		return text + "good"
	}
}
