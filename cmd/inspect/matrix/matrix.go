package matrix

import (
	"maps"
	"slices"

	"gridproxy/cmd/inspect/explain"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Matrix says for each Service from where the clients of each unit are answered.
type Matrix struct {
	Units    []Unit    `json:"units"`
	LeftOut  int       `json:"leftOut,omitempty"` // how many units there are besides
	Services []Service `json:"services"`          // in the order of the Snapshot
}

// Service is one Service from all units.
type Service struct {
	Service   string   `json:"service"` // namespace/name
	ClosedBy  string   `json:"closedBy"`
	Malformed string   `json:"malformed,omitempty"` // why the annotations cannot be parsed
	Cells     []*Cell  `json:"cells"`               // one for each of Matrix.Units
	Notes     []string `json:"notes,omitempty"`     // why there are no rules for it
}

// builder is what all Services share.
type builder struct {
	snapshot topology.Snapshot
	config   topology.Config
	slices   map[types.NamespacedName][]*topology.Slice
	nodes    []string // sorted
	labels   []labels.Set
	units    []Unit
	keys     []string // each Unit.Key once
	places   map[string]places
	interned interned
}

// New makes the Matrix of some Services of a Snapshot, whose Node does not matter. If none of them
// is closed, the units are those of all Services. Those without rules count only if no other is
// closed.
func New(s topology.Snapshot, c topology.Config, rows []*corev1.Service) Matrix {
	var keys []string
	for _, services := range [][]*corev1.Service{withRules(rows, c), withRules(s.Services, c), s.Services} {
		if keys = unitKeys(s, services); len(keys) > 0 {
			break
		}
	}
	s.Services = rows
	b := builder{
		snapshot: s, config: c, slices: explain.SlicesOf(s), nodes: slices.Sorted(maps.Keys(s.Nodes)),
		places: map[string]places{}, interned: interned{made: map[string]*Cell{}},
	}
	for _, node := range b.nodes {
		b.labels = append(b.labels, s.Nodes[node])
	}
	m := Matrix{Services: make([]Service, len(s.Services))}
	m.Units, m.LeftOut = unitsOf(b.labels, keys)
	b.units = m.Units
	for _, u := range m.Units {
		if _, found := b.places[u.Key]; found {
			continue
		}
		b.keys = append(b.keys, u.Key)
		if u.Key == "" {
			b.places[u.Key] = newPlaces(s, keys)
		} else {
			b.places[u.Key] = newPlaces(s, []string{u.Key})
		}
	}
	for i, svc := range s.Services {
		m.Services[i] = b.row(svc)
	}
	for _, g := range b.groups() {
		b.fill(m.Services, g)
	}
	return m
}

// row returns the row of a Service before anything is decided, which one without rules keeps.
func (b *builder) row(svc *corev1.Service) Service {
	row := Service{Service: explain.NameOf(svc).String(), Cells: make([]*Cell, len(b.units))}
	if note := explain.WithoutRules(svc, b.config); note != "" {
		row.Notes = []string{note}
	}
	for i := range row.Cells {
		row.Cells[i] = b.interned.cell(explain.NoRules, nil, false)
	}
	return row
}

// fill decides about the Services of a group, once for each class of Nodes, and writes their rows.
func (b *builder) fill(rows []Service, g *group) {
	b.prepare(g)
	decided := make([]decision, len(g.services))
	for class, view := range b.views(g) {
		for i, service := range g.services {
			ports := topology.PortsOf(view.Ports, explain.NameOf(b.snapshot.Services[service]))
			if class == 0 {
				decided[i] = b.newDecision(b.snapshot.Services[service], len(g.classes))
				closure := ports[0].Closure
				rows[service].ClosedBy, rows[service].Malformed = explain.ClosedBy(closure), closure.Malformed
			}
			for _, key := range b.keys {
				decided[i].cells[key][class] = b.places[key].cell(&b.interned, ports, decided[i].everywhere[key])
			}
		}
	}
	for i, u := range b.units {
		present := make([]int, 0, len(u.members)) // the classes of the unit's Nodes
		for _, node := range u.members {
			present = append(present, g.classOf[node])
		}
		slices.Sort(present)
		present = slices.Compact(present)
		for n, service := range g.services {
			rows[service].Cells[i] = b.interned.join(decided[n].cells[u.Key], present, ByNode)
		}
	}
}

// decision is what is decided about one Service, in terms of each Unit.Key.
type decision struct {
	cells      map[string][]*Cell  // by class
	everywhere map[string][]string // where the Service has endpoints
}

func (b *builder) newDecision(svc *corev1.Service, count int) decision {
	d := decision{cells: map[string][]*Cell{}, everywhere: map[string][]string{}}
	for _, key := range b.keys {
		d.cells[key] = make([]*Cell, count)
		var found []string
		for _, slice := range b.slices[explain.NameOf(svc)] {
			for _, e := range slice.Endpoints {
				found = b.places[key].add(found, e.Node)
			}
		}
		d.everywhere[key] = found
	}
	return d
}
