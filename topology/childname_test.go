package topology

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestChildName(t *testing.T) {
	long := strings.Repeat("x", 60)
	for _, test := range []struct{ what, got, want string }{
		{"the manual's", DeploymentName("deploymentgrid-demo", "beijing"), "deploymentgrid-demo-beijing"},
		{"the manual's", StatefulSetName("statefulsetgrid-demo", "beijing"), "statefulsetgrid-demo-beijing"},
		{"the manual's", ServiceName("servicegrid-demo"), "servicegrid-demo-svc"},
		{"K: the value begins the grid's name", StatefulSetName("zone-app", "zone"), "zone-app-zone"},
		{"B-08: not legal in DNS", DeploymentName("web", "Zone_1"), "web-zone-1-6dc0fb24"},
		{"dots in a Deployment's name are legal", DeploymentName("web", "v1.2"), "web-v1.2"},
		{"a dot next to a dash is not", DeploymentName("web", "v1.-2"), "web-v1--2-30ffc4c1"},
		{"no dots in the host names of Pods", StatefulSetName("web", "v1.2"), "web-v1-2-5bb32007"},
		{"52 bytes", StatefulSetName("web", long[:48]), "web-" + long[:48]},
		{"53 bytes", StatefulSetName("web", long[:49]), "web-" + long[:39] + "-f831dd95"},
		{"no dots in a Service's name", ServiceName("my.shop"), "my-shop-svc-42439419"},
		{"a letter begins a Service's name", ServiceName("1a"), "g-1a-svc-c08f03ee"},
		{"63 bytes", ServiceName(long[:59]), long[:59] + "-svc"},
		{"64 bytes", ServiceName(long), long[:50] + "-svc-954fc4c8"},
		{"a legal label value", LabelValue("location"), "location"},
		{"B-09: a key with a prefix", LabelValue("topology.kubernetes.io/zone"), "topology.kubernetes.io-zone-d26ba3a6"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %s, want %s", test.what, test.got, test.want)
		}
	}
}

// TestChildNameProperties: for anything that can be the name of a Grid and any label value the
// names are valid and a pure function of the two, and two units of one Grid have two names.
func TestChildNameProperties(t *testing.T) {
	grid := rapid.OneOf(
		rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?){0,4}`),
		rapid.StringMatching(`[a-z0-9]{253}`),
	)
	value := rapid.StringMatching(`[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		g, a, b := grid.Draw(t, "grid"), value.Draw(t, "a"), value.Draw(t, "b")
		if problems := validation.IsDNS1123Subdomain(DeploymentName(g, a)); len(problems) > 0 {
			t.Errorf("%s: %v", DeploymentName(g, a), problems)
		}
		if name := StatefulSetName(g, a); len(name) > MaxStatefulSetName || len(validation.IsDNS1123Label(name)) > 0 {
			t.Errorf("%s: no name of a StatefulSet", name)
		}
		if problems := validation.IsDNS1035Label(ServiceName(g)); len(problems) > 0 {
			t.Errorf("%s: %v", ServiceName(g), problems)
		}
		for _, text := range []string{LabelValue(g), LabelValue(g + "/" + a)} {
			if problems := validation.IsValidLabelValue(text); len(problems) > 0 {
				t.Errorf("%s: %v", text, problems)
			}
		}
		for _, name := range []func(grid, value string) string{DeploymentName, StatefulSetName} {
			if first, second := name(g, a), name(g, a); first != second {
				t.Errorf("%s and %s: not a pure function", first, second)
			}
			if (name(g, a) == name(g, b)) != (a == b) {
				t.Errorf("%q and %q of %s: %s and %s", a, b, g, name(g, a), name(g, b))
			}
		}
	})
}

// TestChildNameOfStrangeText: whatever a manifest holds, a name is valid.
func TestChildNameOfStrangeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, v := rapid.String().Draw(t, "grid"), rapid.String().Draw(t, "value")
		for _, name := range []string{DeploymentName(g, v), StatefulSetName(g, v)} {
			if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
				t.Errorf("%s: %v", name, problems)
			}
		}
		if problems := validation.IsDNS1035Label(ServiceName(g)); len(problems) > 0 {
			t.Errorf("%s: %v", ServiceName(g), problems)
		}
	})
}
