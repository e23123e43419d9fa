package matrix

import (
	"iter"
	"slices"
	"strings"

	"gridproxy/cmd/inspect/explain"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
)

// What topology.Resolve decides about a Service reads of a Node its labels under the keys in force,
// the label of its zone where EndpointSlices have hints, and its name. The name is compared with
// the names in the EndpointSlices only, so it makes no difference on a Node that they do not name.
// On a Node that they name, hints for Nodes may change everything. Otherwise, unless closure leaves
// only own endpoints, the name decides about ServicePort.Local alone.

// group is Services that read the same of Nodes, and so are decided together.
type group struct {
	keys   []string        // that may be in force
	zone   bool            // the label of the zone is read
	narrow bool            // endpoints that share none of the keys with a Node are outside there
	hinted map[string]bool // Nodes that hints name; only of a group of one Service
	own    map[string]bool // Nodes whose own endpoints make a difference; in the same way

	services []int // indices of the Snapshot's
	near     nearEndpoints

	classes []class
	classOf []int // by the index of the Node
}

// class is Nodes that have the same decisions.
type class struct {
	node int // the index of one of them
	like int // it differs from this class by own endpoints only; -1 = no such class
}

// groupOf returns the group that a Service would be alone in. It errs on the safe side: more
// keys and names than necessary only cost time.
func groupOf(s topology.Snapshot, c topology.Config, svc *corev1.Service, all []*topology.Slice) group {
	_, _, err := topology.ParseKeys(svc.Annotations)
	g := group{keys: keysOf(s, svc), hinted: map[string]bool{}, own: map[string]bool{}}
	g.narrow = err == nil && len(g.keys) > 0 && !slices.Contains(g.keys, topology.AnyEndpoint)
	ownCount := err != nil || explain.InternalLocal(svc) || c.NodesWithoutUnit == topology.WithoutUnitLocal && len(g.keys) > 0
	for _, slice := range all {
		for _, e := range slice.Endpoints {
			if ownCount {
				g.own[e.Node] = true
			}
			if e.Hints == nil {
				continue
			}
			g.zone = true
			for _, node := range e.Hints.Nodes {
				g.hinted[node] = true
			}
		}
	}
	return g
}

// id returns the same text for groups that can be one: those that read the same labels of Nodes
// and depend on no Node by its name. g is the group that svc would be alone in.
func (g group) id(svc *corev1.Service) string {
	id := strings.Join(g.keys, ",")
	if g.zone {
		id += " zone"
	}
	if !g.narrow {
		id += " all endpoints"
	}
	if len(g.own)+len(g.hinted) > 0 {
		id += " " + svc.Namespace + "/" + svc.Name
	}
	return id
}

// groups returns all Services that have rules, each in one group.
func (b *builder) groups() []*group {
	var all []*group
	byID := map[string]*group{}
	for i, svc := range b.snapshot.Services {
		if explain.WithoutRules(svc, b.config) != "" {
			continue
		}
		g := groupOf(b.snapshot, b.config, svc, b.slices[explain.NameOf(svc)])
		id := g.id(svc)
		if byID[id] == nil {
			byID[id] = &g
			all = append(all, &g)
		}
		byID[id].services = append(byID[id].services, i)
	}
	return all
}

// classify sets g.classes and g.classOf: it groups the Nodes by what the Services read of them.
func (b *builder) classify(g *group) {
	keys := g.keys
	if g.zone {
		keys = append(slices.Clone(keys), corev1.LabelTopologyZone)
	}
	g.classOf = make([]int, len(b.nodes))
	numbers := map[string]int{}
	var text []byte
	for i, node := range b.nodes {
		text = text[:0]
		for _, key := range keys {
			text = append(append(text, b.labels[i][key]...), 0)
		}
		if g.hinted[node] {
			text = append(text, node...)
		}
		number, found := numbers[string(text)]
		if !found {
			number = len(g.classes)
			numbers[string(text)] = number
			g.classes = append(g.classes, class{node: i, like: -1})
		}
		g.classOf[i] = number
		if g.own[b.nodes[g.classes[number].node]] { // a Node without own endpoints speaks for more
			g.classes[number].node = i
		}
	}
	for i, node := range b.nodes {
		if g.own[node] && !g.hinted[node] {
			g.classes = append(g.classes, class{node: i, like: g.classOf[i]})
			g.classOf[i] = len(g.classes) - 1
		}
	}
}

// prepare sets everything in g that is the same on all Nodes: its classes, and near.
func (b *builder) prepare(g *group) {
	b.classify(g)
	var all []*topology.Slice
	for _, n := range g.services {
		all = append(all, b.slices[explain.NameOf(b.snapshot.Services[n])]...)
	}
	g.near = nearEndpoints{all: all}
	if g.narrow {
		g.near.byLabel(g.keys, b.snapshot.Nodes)
	}
	if len(g.own) > 0 {
		g.near.byNode()
	}
}

// views yields the decisions for each class of Nodes, with the index of the class.
func (b *builder) views(g *group) iter.Seq2[int, topology.View] {
	return func(yield func(class int, view topology.View) bool) {
		var before []topology.View // of a group of one Service
		for i, c := range g.classes {
			s := b.snapshot
			s.Node, s.Self = b.nodes[c.node], nil
			s.Services = make([]*corev1.Service, len(g.services))
			for i, n := range g.services {
				s.Services[i] = b.snapshot.Services[n]
			}
			if c.like < 0 {
				s.Slices = g.near.inUnit(g.keys, b.labels[c.node])
			} else {
				s.Slices = g.near.on(s.Node)
			}
			view := topology.Resolve(s, b.config)
			if c.like >= 0 {
				view = withOwn(before[c.like], view)
			} else if len(g.own) > 0 {
				before = append(before, view)
			}
			if !yield(i, view) {
				return
			}
		}
	}
}

// withOwn returns the View v, of a Node without own endpoints, as that of a Node with them. own
// is decided from these alone.
func withOwn(v, own topology.View) topology.View {
	ports := slices.Clone(own.Ports)
	for i, sp := range own.Ports {
		if !sp.Closure.OwnOnly { // else own endpoints are all that counts
			joined := *v.Ports[i]
			joined.Local = sp.Local
			ports[i] = &joined
		}
	}
	own.Ports = ports
	return own
}
