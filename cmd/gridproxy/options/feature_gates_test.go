package options

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestFeatureGates: kube-proxy's gate AllowServiceExternalIPs has its effect from the file and from
// the command line. A gate that changes kube-proxy and not this daemon is a warning, if its value
// is not how this daemon is. One that changes neither is accepted.
func TestFeatureGates(t *testing.T) {
	if err := (gatesValue{new(FeatureGates)}).Set("allowserviceexternalips=false"); err == nil || !strings.Contains(err.Error(), "write AllowServiceExternalIPs") {
		t.Errorf("a gate in small letters: %v", err)
	}
	hints := []string{"feature gate PreferSameTrafficDistribution=false has no effect: here it is always true"}
	for _, test := range []struct {
		file     string
		args     []string
		ignored  bool
		warnings []string
	}{
		{"", nil, false, nil},
		{"featureGates: {AllowServiceExternalIPs: false, PreferSameTrafficDistribution: false, AllAlpha: true}\n", nil, true, hints},
		{"featureGates: {AllowServiceExternalIPs: true, PreferSameTrafficDistribution: true}\n", nil, false, nil},
		{"", []string{"--feature-gates=AllowServiceExternalIPs=false"}, true, nil},
		{"featureGates: {AllowServiceExternalIPs: false}\n", []string{"--feature-gates=AllowServiceExternalIPs=true"}, false, nil},
		{"featureGates: {AllowServiceExternalIPs: true}\n", []string{"--feature-gates=AllAlpha=true, AllowServiceExternalIPs=F"}, true, nil},
		{"featureGates: {AllowServiceExternalIPs: false}\n", []string{"--feature-gates=PreferSameTrafficDistribution=false"}, true, hints},
		{"featureGates: {PreferSameTrafficDistribution: false}\n", []string{"--feature-gates=PreferSameTrafficDistribution=true"}, false, nil},
		{"", []string{"--feature-gates=AllowServiceExternalIPs=false", "--feature-gates=AllowServiceExternalIPs=true"}, false, nil},
	} {
		o, warnings, err := readConfig(t, head+test.file, test.args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.Rules().IgnoreExternalIPs; got != test.ignored {
			t.Errorf("file %q, flags %q: externalIPs ignored: %t, want %t", test.file, test.args, got, test.ignored)
		}
		if diff := cmp.Diff(test.warnings, append(warnings, o.Warnings()...), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("file %q, flags %q: warnings (-want +got):\n%s", test.file, test.args, diff)
		}
	}
}
