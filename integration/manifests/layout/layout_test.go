package layout

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

// allowed says, for packages below a prefix, which of our own packages they may import;
// the longest prefix counts. Packages of cmd without a row may import anything of the product; for
// integration see TestImportsOfIntegration.
var allowed = map[string][]string{
	"gridproxy/deploy":                {},
	"gridproxy/deploy/image/rootfs":   {"gridproxy/deploy/image/tree"},
	"gridproxy/topology":              {"gridproxy/topology/excerpt", "gridproxy/topology/similar", "gridproxy/topology/changes", "gridproxy/topology/dnsview"},
	"gridproxy/topology/changes":      {},
	"gridproxy/topology/dnsview":      {},
	"gridproxy/topology/documents":    {},
	"gridproxy/topology/excerpt":      {},
	"gridproxy/topology/similar":      {},
	"gridproxy/topology/topologytest": {"gridproxy/topology", "gridproxy/topology/dnsview"},
	"gridproxy/topology/object":       {"gridproxy/topology"},
	"gridproxy/topology/manifest":     {"gridproxy/topology", "gridproxy/topology/documents", "gridproxy/topology/excerpt", "gridproxy/topology/object", "gridproxy/topology/regularfile"},
	"gridproxy/topology/regularfile":  {"gridproxy/topology/excerpt"},
	"gridproxy/topology/dnsfeed":      {"gridproxy/topology/changes", "gridproxy/topology/dnsview"},
	"gridproxy/topology/state":        {"gridproxy/topology", "gridproxy/topology/object"},
	"gridproxy/topology/watch": {"gridproxy/topology", "gridproxy/topology/changes", "gridproxy/topology/excerpt", "gridproxy/topology/object", "gridproxy/topology/manifest", "gridproxy/topology/regularfile",
		"gridproxy/topology/state"},
	"gridproxy/rules":                  {"gridproxy/topology", "gridproxy/topology/changes", "gridproxy/topology/excerpt"},
	"gridproxy/rules/rulestest":        {"gridproxy/topology", "gridproxy/rules"},
	"gridproxy/rules/host":             {"gridproxy/topology", "gridproxy/topology/regularfile", "gridproxy/rules/kernelsocket"},
	"gridproxy/rules/netfilter":        {},
	"gridproxy/rules/netfilter/trace":  {"gridproxy/rules/netfilter"},
	"gridproxy/rules/iptables":         {"gridproxy/topology", "gridproxy/topology/excerpt", "gridproxy/rules", "gridproxy/rules/host", "gridproxy/rules/iptables/refusal", "gridproxy/rules/iptables/render", "gridproxy/rules/netfilter"},
	"gridproxy/rules/iptables/refusal": {"gridproxy/topology", "gridproxy/topology/excerpt", "gridproxy/rules", "gridproxy/rules/host", "gridproxy/rules/iptables/render", "gridproxy/rules/netfilter"},
	"gridproxy/rules/iptables/render":  {"gridproxy/topology", "gridproxy/rules", "gridproxy/rules/netfilter"},
	"gridproxy/rules/ipvs":             {"gridproxy/topology", "gridproxy/rules", "gridproxy/rules/kernelsocket", "gridproxy/rules/host", "gridproxy/rules/netfilter", "gridproxy/rules/netfilter/trace"},
	"gridproxy/rules/kernelsocket":     {},
	"gridproxy/rules/dnsredirect":      {"gridproxy/topology", "gridproxy/topology/dnsview", "gridproxy/rules", "gridproxy/rules/kernelsocket", "gridproxy/rules/netfilter"},
	"gridproxy/rules/conntrack":        {"gridproxy/topology", "gridproxy/topology/changes", "gridproxy/topology/excerpt", "gridproxy/rules"},
	"gridproxy/rules/healthcheck":      {"gridproxy/topology", "gridproxy/topology/excerpt", "gridproxy/rules"},
	"gridproxy/rules/names":            {"gridproxy/topology/dnsview"},
	"gridproxy/rules/syncer":           {"gridproxy/topology", "gridproxy/topology/excerpt", "gridproxy/rules"},
	"gridproxy/controller/api/v1":      {},
	"gridproxy/controller/removal":     {},
	"gridproxy/controller/retry":       {},
	"gridproxy/controller/written":     {},
	"gridproxy/controller/flips":       {"gridproxy/topology/excerpt"},
	"gridproxy/controller/gridspec":    {"gridproxy/topology", "gridproxy/topology/similar", "gridproxy/controller/api/v1"},
	"gridproxy/controller/grid/expand": {"gridproxy/topology", "gridproxy/topology/excerpt", "gridproxy/controller/api/v1", "gridproxy/controller/flips",
		"gridproxy/controller/gridspec", "gridproxy/controller/removal"},
	"gridproxy/controller/grid": {"gridproxy/topology", "gridproxy/topology/excerpt", "gridproxy/controller/api/v1", "gridproxy/controller/api/v1alpha1", "gridproxy/controller/grid/expand",
		"gridproxy/controller/flips", "gridproxy/controller/gridspec", "gridproxy/controller/removal", "gridproxy/controller/retry", "gridproxy/controller/written"},

	"gridproxy/controller/api/site/v1alpha2": {},
	"gridproxy/controller/api/site/v1alpha1": {"gridproxy/controller/api/site/v1alpha2"},
	"gridproxy/controller/site/assign": {"gridproxy/controller/flips", "gridproxy/controller/removal", "gridproxy/controller/retry",
		"gridproxy/controller/api/v1", "gridproxy/controller/api/site/v1alpha2", "gridproxy/topology", "gridproxy/topology/excerpt"},
	"gridproxy/controller/site": {"gridproxy/controller/flips", "gridproxy/controller/removal", "gridproxy/controller/retry", "gridproxy/controller/written",
		"gridproxy/controller/api/v1", "gridproxy/controller/api/site/v1alpha2", "gridproxy/controller/site/assign",
		"gridproxy/topology", "gridproxy/topology/excerpt",
	},

	"gridproxy/controller/api/v1alpha1":       {"gridproxy/controller/api/v1"},
	"gridproxy/controller/federation/archive": {},
	"gridproxy/controller/federation/hub/plan": {"gridproxy/topology/excerpt", "gridproxy/controller/api/v1", "gridproxy/controller/api/v1alpha1",
		"gridproxy/controller/federation/archive", "gridproxy/controller/removal", "gridproxy/controller/retry"},
	"gridproxy/controller/federation/agent/delivery": {"gridproxy/controller/api/v1", "gridproxy/controller/api/v1alpha1", "gridproxy/controller/federation/archive",
		"gridproxy/topology/excerpt"},
	"gridproxy/controller/federation/agent": {"gridproxy/controller/api/v1", "gridproxy/controller/api/v1alpha1", "gridproxy/controller/federation/archive",
		"gridproxy/controller/federation/agent/delivery", "gridproxy/controller/federation/hub/plan", "gridproxy/controller/retry", "gridproxy/topology/excerpt"},
	"gridproxy/controller/federation/hub": {"gridproxy/controller/api/v1", "gridproxy/controller/api/v1alpha1", "gridproxy/controller/federation/archive",
		"gridproxy/controller/federation/hub/plan", "gridproxy/controller/removal", "gridproxy/controller/retry", "gridproxy/controller/written", "gridproxy/topology/excerpt",
	},

	"gridproxy/cmd/gridproxy/localdns": {"gridproxy/cmd/dnsquery", "gridproxy/cmd/gridproxy/options", "gridproxy/cmd/gridproxy/socket",
		"gridproxy/rules", "gridproxy/rules/conntrack", "gridproxy/rules/dnsredirect", "gridproxy/rules/host", "gridproxy/rules/syncer",
		"gridproxy/topology", "gridproxy/topology/dnsfeed", "gridproxy/topology/dnsview", "gridproxy/topology/watch"},
	"gridproxy/cmd/inspect": {"gridproxy/cmd/command", "gridproxy/cmd/table", "gridproxy/cmd/inspect/explain", "gridproxy/cmd/inspect/matrix",
		"gridproxy/controller/api/v1", "gridproxy/controller/api/v1alpha1", "gridproxy/controller/gridspec", "gridproxy/rules", "gridproxy/rules/names",
		"gridproxy/topology", "gridproxy/topology/dnsview", "gridproxy/topology/excerpt", "gridproxy/topology/similar"},
	"gridproxy/cmd/kubectl-grid": {"gridproxy/cmd/command", "gridproxy/cmd/command/man", "gridproxy/cmd/command/objectnames", "gridproxy/cmd/table",
		"gridproxy/cmd/gridproxy/health", // whose answer it reads
		"gridproxy/cmd/inspect/analyze", "gridproxy/cmd/inspect/clusterlist", "gridproxy/cmd/inspect/explain", "gridproxy/cmd/inspect/matrix",
		"gridproxy/cmd/kubectl-grid/fleet", "gridproxy/cmd/kubectl-grid/nodeproxy",
		"gridproxy/controller/api/v1", "gridproxy/controller/api/v1alpha1", "gridproxy/controller/grid/expand", "gridproxy/controller/gridspec",
		"gridproxy/rules", "gridproxy/topology", "gridproxy/topology/excerpt"},
}

// pure packages take values and return values: nothing in them can fail, block, log or
// know the time.
var pure = []string{
	"gridproxy/topology", "gridproxy/topology/excerpt", "gridproxy/topology/similar", "gridproxy/topology/changes", "gridproxy/topology/dnsview", "gridproxy/topology/dnsfeed",
	"gridproxy/rules", "gridproxy/rules/iptables/render", "gridproxy/rules/netfilter", "gridproxy/rules/netfilter/trace", "gridproxy/rules/names",
	"gridproxy/controller/flips", "gridproxy/controller/removal", "gridproxy/controller/retry", "gridproxy/controller/gridspec", "gridproxy/controller/grid/expand", "gridproxy/controller/site/assign",
	"gridproxy/controller/api/v1alpha1", "gridproxy/controller/federation/archive", "gridproxy/controller/federation/hub/plan",
	"gridproxy/controller/federation/agent/delivery",
}

var impure = []string{"os", "os/exec", "net", "net/http", "log", "log/slog", "k8s.io/klog/v2", "k8s.io/client-go"}

func TestImports(t *testing.T) {
	for _, p := range listPackages(t) {
		rule, found := ruleFor(p.ImportPath)
		for _, imported := range p.Imports {
			if found && strings.HasPrefix(imported, "gridproxy/") && !slices.Contains(rule, imported) {
				t.Errorf("%s imports %s; it may import only %v", p.ImportPath, imported, rule)
			}
			if slices.Contains(pure, p.ImportPath) && isImpure(imported) {
				t.Errorf("%s is pure, yet imports %s", p.ImportPath, imported)
			}
		}
	}
}

// TestNames: a package is named after what it is, not after being useful.
func TestNames(t *testing.T) {
	for _, p := range listPackages(t) {
		for _, element := range strings.Split(p.ImportPath, "/") {
			if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "manager", "misc"}, element) {
				t.Errorf("%s: the name %q does not say what it is", p.ImportPath, element)
			}
		}
	}
}

func isImpure(imported string) bool {
	return slices.ContainsFunc(impure, func(i string) bool {
		return imported == i || strings.HasPrefix(imported, i+"/") && i != "net" && i != "log"
	})
}

func ruleFor(path string) ([]string, bool) {
	for prefix := path; strings.Contains(prefix, "/"); prefix = prefix[:strings.LastIndex(prefix, "/")] {
		if rule, found := allowed[prefix]; found {
			return rule, true
		}
	}
	return nil, false
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "gridproxy/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	var all []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("reading the list of packages: %v", err)
		}
		all = append(all, p)
	}
}
