package options

import (
	"cmp"
	_ "embed" // of the names of gates
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// The feature gates of kube-proxy that have an effect here. Both are true by default.
const (
	// GateExternalIPs: if it is false, spec.externalIPs of all Services are ignored (KEP-5707,
	// CVE-2020-8554).
	GateExternalIPs = "AllowServiceExternalIPs"
	// GateIPVS: if it is false, there is no mode ipvs.
	GateIPVS = "KubeProxyIPVS"
)

// knownGates are the names of all gates that kube-proxy 1.36 or 1.37 accepts, which includes those
// of other programs of Kubernetes, and of those about Services that 1.33 to 1.35 accepts. The test
// TestCommandLine of integration/node compares them with the help of the real kube-proxy.
//
//go:embed kube_proxy_gates.txt
var knownGates string

// fixedGates returns the gates that change what kube-proxy does, and not what this daemon does.
// It always acts by the value here.
func fixedGates() map[string]bool {
	return map[string]bool{
		"ClientsAllowCBOR":              false,
		"ClientsPreferCBOR":             false,
		"ComponentFlagz":                false, // there is no /flagz
		"ComponentStatusz":              false, // there is no /statusz
		"NativeHistograms":              false,
		"PreferSameTrafficDistribution": true,
		"WatchListClient":               false, // lists are compressed by every API server
	}
}

// FeatureGates are the gates that the operator set, sorted by name, each once.
type FeatureGates []FeatureGate

// FeatureGate is one feature gate of kube-proxy.
type FeatureGate struct {
	Name    string
	Enabled bool
}

// Enabled reports whether a gate is on. A gate that the operator did not set has the value
// otherwise.
func (g FeatureGates) Enabled(name string, otherwise bool) bool {
	if i := g.find(name); i >= 0 {
		return g[i].Enabled
	}
	return otherwise
}

// Warnings name the gates that would change what kube-proxy does, and have no effect here. Gates
// that change nothing in kube-proxy either are not named.
func (g FeatureGates) Warnings() []string {
	var warnings []string
	fixed := fixedGates()
	for _, gate := range g {
		if always, found := fixed[gate.Name]; found && always != gate.Enabled {
			warnings = append(warnings, fmt.Sprintf("feature gate %s=%t has no effect: here it is always %t", gate.Name, gate.Enabled, always))
		}
	}
	return warnings
}

func (g FeatureGates) find(name string) int {
	return slices.IndexFunc(g, func(gate FeatureGate) bool { return gate.Name == name })
}

// with returns the gates of g and more, sorted by name. The values of more win.
func (g FeatureGates) with(more FeatureGates) FeatureGates {
	g = slices.Clone(g)
	for _, gate := range more {
		if i := g.find(gate.Name); i >= 0 {
			g[i] = gate
		} else {
			g = append(g, gate)
		}
	}
	slices.SortFunc(g, func(a, b FeatureGate) int { return cmp.Compare(a.Name, b.Name) })
	return g
}

// gatesValue is the pflag.Value of --feature-gates. As with kube-proxy, the flag may be repeated,
// and the last value of a gate counts.
type gatesValue struct{ to *FeatureGates }

func (v gatesValue) Type() string { return "NAME=true|false,..." }

func (v gatesValue) String() string {
	if v.to == nil {
		return ""
	}
	words := make([]string, len(*v.to))
	for i, gate := range *v.to {
		words[i] = fmt.Sprintf("%s=%t", gate.Name, gate.Enabled)
	}
	return strings.Join(words, ",")
}

func (v gatesValue) Set(text string) error {
	gates, err := parseFeatureGates(text)
	if err == nil {
		*v.to = v.to.with(gates)
	}
	return err
}

func (v gatesValue) setDefault(text string) error {
	gates, err := parseFeatureGates(text)
	if err == nil {
		*v.to = gates.with(*v.to)
	}
	return err
}

// defaultGate sets a gate of the file, unless the command line sets the same gate. Other gates on
// the command line do not matter.
func defaultGate(flag *pflag.Flag, name, enabled string) error {
	v, ok := flag.Value.(gatesValue)
	if !ok {
		return fmt.Errorf("--%s is no list of feature gates", flag.Name)
	}
	return v.setDefault(name + "=" + enabled)
}

func parseFeatureGates(text string) (FeatureGates, error) {
	var gates FeatureGates
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, enabled, found := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		on, err := strconv.ParseBool(strings.TrimSpace(enabled))
		if !found || name == "" || err != nil {
			return nil, fmt.Errorf("%q is not NAME=true or NAME=false; put commas between several", part)
		}
		if err := checkGate(name); err != nil {
			return nil, err
		}
		gates = gates.with(FeatureGates{{Name: name, Enabled: on}})
	}
	return gates, nil
}

// checkGate returns an error unless kube-proxy would accept the name of a gate.
func checkGate(name string) error {
	for known := range strings.FieldsSeq(knownGates) {
		if known == name {
			return nil
		}
		if strings.EqualFold(known, name) {
			return fmt.Errorf("%q is not how the gate is written: write %s", name, known)
		}
	}
	return fmt.Errorf("%q is no feature gate of kube-proxy 1.36 or 1.37; correct its name or remove it", name)
}
