package options

import (
	"fmt"
	"slices"
	"strings"

	"gridproxy/rules/ipvs"
)

// Mode is a kernel mechanism, by the name that kube-proxy has for it.
type Mode string

// The modes.
const (
	ModeIPTables Mode = "iptables"
	ModeIPVS     Mode = "ipvs"
)

// modeFlags is what the flags of one mode are, and what they may be combined with.
type modeFlags struct {
	name    Mode
	periods func(*Options) *Periods
	fields  []string // of the configuration file that only this mode has; one that ends in a dot is a prefix
	parts   []Part   // the texts that make up its rules; none = there is one text
	alone   string   // why it cannot run beside another proxy
	gate    string   // the feature gate of kube-proxy that allows it
}

// table returns the flags of every mode. The first is the default.
func table() []modeFlags {
	return []modeFlags{
		{
			name: ModeIPTables, periods: func(o *Options) *Periods { return &o.IPTables },
			fields: []string{"iptables.syncPeriod", "iptables.minSyncPeriod"},
		},
		{
			name: ModeIPVS, periods: func(o *Options) *Periods { return &o.IPVS.Periods },
			fields: []string{"ipvs."}, parts: Parts(), gate: GateIPVS,
			alone: "has one link and one set of names on a node, which kube-proxy may have",
		},
	}
}

// Modes returns the values of --proxy-mode. The first is the default.
func Modes() []Mode {
	var names []Mode
	for _, m := range table() {
		names = append(names, m.name)
	}
	return names
}

// flagsOfMode returns the flags of one mode, or of the default if no mode has the name.
func flagsOfMode(name Mode) modeFlags {
	return firstMode(func(m modeFlags) bool { return m.name == name })
}

// firstMode returns the first mode that fits, or the default if none does.
func firstMode(fits func(modeFlags) bool) modeFlags {
	all := table()
	return all[max(0, slices.IndexFunc(all, fits))]
}

// has reports whether only this mode has a field of the configuration file.
func (m modeFlags) has(field string) bool {
	return slices.ContainsFunc(m.fields, func(own string) bool {
		return field == own || strings.HasSuffix(own, ".") && strings.HasPrefix(field, own)
	})
}

// Periods returns the periods of the mode that is in use.
func (o Options) Periods() Periods { return *flagsOfMode(o.ProxyMode).periods(&o) }

// Part is one of the texts that make up the rules of mode ipvs.
type Part string

// Parts returns the parts of package ipvs, and what is for iptables-restore, in the order in
// which they are printed.
func Parts() []Part {
	var all []Part
	for _, p := range ipvs.Parts() {
		all = append(all, Part(p.Name))
	}
	return append(all, "iptables")
}

// parseProxyMode takes an empty name, as in the file of kubeadm, for the default.
func parseProxyMode(text string) (Mode, error) {
	switch text {
	case "":
		return Modes()[0], nil
	case "nftables":
		return "", fmt.Errorf("there is no mode nftables; want iptables, which writes through nf_tables with --iptables-variant nft, or ipvs")
	default:
		return oneOf(Modes()...)(text)
	}
}

// checkMode calls wrong for each option that the mode in use cannot be combined with.
func (o Options) checkMode(wrong func(format string, args ...any)) {
	mode := flagsOfMode(o.ProxyMode)
	if o.ServiceProxyName != "" && mode.alone != "" {
		wrong("--service-proxy-name %s: mode %s %s; use --proxy-mode %s", o.ServiceProxyName, mode.name, mode.alone,
			firstMode(func(m modeFlags) bool { return m.alone == "" }).name)
	}
	if mode.gate != "" && !o.FeatureGates.Enabled(mode.gate) {
		wrong("--proxy-mode %s: feature gate %s is false, so that kube-proxy has no such mode; use --proxy-mode %s, or set the gate to true", mode.name, mode.gate,
			firstMode(func(m modeFlags) bool { return m.gate == "" }).name)
	}
	if p := o.Periods(); p.Sync < p.MinSync {
		wrong("--%[1]s-sync-period %[2]s is shorter than --%[1]s-min-sync-period %[3]s: give at least %[3]s, or a shorter least time between syncs", mode.name, p.Sync, p.MinSync)
	}
	if o.Part != "" && len(mode.parts) == 0 {
		wrong("--part %s: the rules of mode %s have no parts; add --proxy-mode %s, or leave --part out", o.Part, o.ProxyMode,
			firstMode(func(m modeFlags) bool { return len(m.parts) > 0 }).name)
	}
}
