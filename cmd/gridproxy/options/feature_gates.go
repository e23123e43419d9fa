package options

import (
	_ "embed" // of the names of gates
	"fmt"
	"maps"
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

// FeatureGates has the value of each gate that the operator set, by its name. Copies of Options
// share the map, so it is never changed.
type FeatureGates map[string]bool

// Enabled reports whether a gate that has an effect here is on, as it is unless set to false.
func (g FeatureGates) Enabled(name string) bool {
	enabled, set := g[name]
	return enabled || !set
}

// Warnings returns a sentence for each gate that is set to another value than the one that this
// daemon always acts by. Gates that change nothing in kube-proxy either are not named.
func (g FeatureGates) Warnings() []string {
	var warnings []string
	fixed := fixedGates()
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if always, found := fixed[name]; found && always != g[name] {
			warnings = append(warnings, fmt.Sprintf("feature gate %s=%t has no effect: here it is always %t", name, g[name], always))
		}
	}
	return warnings
}

// merge returns the gates of g and more. The values of more win.
func (g FeatureGates) merge(more FeatureGates) FeatureGates {
	all := FeatureGates{}
	maps.Copy(all, g)
	maps.Copy(all, more)
	return all
}

// gatesValue is the pflag.Value of --feature-gates. As with kube-proxy, the flag may be repeated,
// and the last value of a gate counts.
type gatesValue struct{ to *FeatureGates }

func (v gatesValue) Type() string { return "NAME=true|false,..." }

func (v gatesValue) String() string {
	if v.to == nil {
		return ""
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(*v.to)) {
		words = append(words, fmt.Sprintf("%s=%t", name, (*v.to)[name]))
	}
	return strings.Join(words, ",")
}

func (v gatesValue) Set(text string) error {
	gates, err := parseFeatureGates(text)
	if err == nil {
		*v.to = v.to.merge(gates)
	}
	return err
}

func (v gatesValue) setDefault(text string) error {
	gates, err := parseFeatureGates(text)
	if err == nil {
		*v.to = gates.merge(*v.to)
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
	gates := FeatureGates{}
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
		gates[name] = on
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
