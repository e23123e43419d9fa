package analyze

import (
	"maps"
	"slices"

	"gridproxy/cmd/inspect/explain"
	"gridproxy/controller/gridspec"
	"gridproxy/rules"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
)

// Config is how the daemons decide, and what to look at.
type Config struct {
	Topology  topology.Config
	Rules     rules.Config
	Grids     []gridspec.Grid // beside the Services of the Snapshot
	Namespace string          // only Services and Grids in it; "" = all
	Cluster   bool            // the Snapshot is of a cluster, where grid-dns may answer: that is not known here

	MaxDecisions int // bounds the work; 0 = decisionsMax
}

// CheckNamespace returns an error if c.Namespace has no Service and no Grid; never if it is "".
func (c Config) CheckNamespace(s topology.Snapshot) error {
	if slices.ContainsFunc(c.Grids, func(g gridspec.Grid) bool { return g.Namespace == c.Namespace }) {
		return nil
	}
	_, err := explain.InNamespace(s, c.Namespace)
	return err
}

// analysis is a Snapshot with what several checks read of it.
type analysis struct {
	config   Config
	snapshot topology.Snapshot // sorted, and seen from no Node
	nodes    []string          // the names, sorted
	carried  []string          // the label keys that a Node has a value of, sorted
	services []*corev1.Service // those to look at
	closed   []closedService   // those of them that are closed
	grids    []gridspec.Grid   // those to look at

	found           map[string][]raw
	unitsLeftOut    int // as in Report
	servicesLeftOut int
}

// closedService is a Service that is closed and has rules.
type closedService struct {
	service *corev1.Service
	closure topology.Closure // seen from no Node
	keys    []string         // label keys in force: closure.Keys without AnyEndpoint
	warning []string
}

// anywhere reports whether a key is AnyEndpoint: clients may use any endpoint in the end.
func (c closedService) anywhere() bool { return len(c.keys) < len(c.closure.Keys) }

// Analyze makes the Report of a Snapshot that holds all Nodes. Its Node does not matter.
func Analyze(s topology.Snapshot, c Config) Report {
	a := analysis{config: c, snapshot: sorted(s), nodes: slices.Sorted(maps.Keys(s.Nodes)), found: map[string][]raw{}}
	a.carried = topology.CarriedKeys(s.Nodes)
	for _, svc := range a.snapshot.Services {
		if c.Namespace == "" || svc.Namespace == c.Namespace {
			a.services = append(a.services, svc)
		}
	}
	for _, g := range c.Grids {
		if !g.Idle && (c.Namespace == "" || g.Namespace == c.Namespace) {
			a.grids = append(a.grids, g)
		}
	}
	view := topology.Resolve(a.snapshot, c.Topology)
	for ports := range explain.ByService(view) {
		sp := ports[0]
		if !sp.Closure.Closed() || c.Namespace != "" && sp.Name.Namespace != c.Namespace {
			continue
		}
		labelKeys := slices.DeleteFunc(slices.Clone(sp.Closure.Keys), func(key string) bool { return key == topology.AnyEndpoint })
		a.closed = append(a.closed, closedService{sp.Service, sp.Closure, labelKeys, sp.Warnings})
	}
	a.annotations()
	if len(a.nodes) > 0 { // else the source is about Services only, and nothing is known of labels
		a.labels()
	}
	a.endpoints()
	a.addresses(rules.Compile(view, c.Rules).AddressConflicts)
	a.gridMistakes()
	r := collect(a.found)
	r.Services, r.Nodes, r.Grids = len(a.services), len(a.nodes), len(a.grids)
	r.UnitsLeftOut, r.ServicesLeftOut = a.unitsLeftOut, a.servicesLeftOut
	return r
}

// sorted returns the Snapshot without a Node of its own, and with its EndpointSlices in order,
// which decides about an endpoint that two of them list.
func sorted(s topology.Snapshot) topology.Snapshot {
	s.Node, s.Self, s.Watched = "", nil, nil
	s.Slices = slices.SortedStableFunc(slices.Values(s.Slices), topology.CompareObjects)
	return s
}

func (a *analysis) add(code string, svc *corev1.Service, texts func() (problem, remedy string)) {
	a.found[code] = append(a.found[code], raw{Object{"Service", svc.Namespace, svc.Name}, texts})
}

func (a *analysis) addNode(code, node string, texts func() (problem, remedy string)) {
	a.found[code] = append(a.found[code], raw{Object{Kind: "Node", Name: node}, texts})
}

// text returns a function that returns these texts, for a pair that costs nothing to make.
func text(problem, remedy string) func() (string, string) {
	return func() (string, string) { return problem, remedy }
}
