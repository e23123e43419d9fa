package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gridproxy/cmd/inspect/explain"
	"gridproxy/cmd/inspect/matrix"
	"gridproxy/cmd/table"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
)

// endpoints finds units that are refused, and endpoints that no unit uses. Services with the same
// keys are looked at together: their units are the same, and one Matrix has a bounded number of
// units, which the keys of other Services cannot use up.
func (a *analysis) endpoints() {
	slicesOf := explain.SlicesOf(a.snapshot)
	budget := cmp.Or(a.config.MaxDecisions, decisionsMax)
	for _, group := range a.groups() {
		part := a.snapshot
		part.Services, part.Slices = nil, nil
		for _, c := range group.services {
			part.Services = append(part.Services, c.service)
			part.Slices = append(part.Slices, slicesOf[explain.NameOf(c.service)]...)
		}
		a.unusable(group.services, part)
		n := 0
		for ; n < len(group.services) && budget >= group.cost(n); n++ {
			budget -= group.cost(n)
		}
		a.servicesLeftOut += len(group.services) - n
		if n > 0 {
			a.refusals(group.services[:n], part)
		}
	}
}

// unusable finds endpoints that no unit uses. Whether an endpoint is in any unit is the same for
// each Node that is in one.
func (a *analysis) unusable(group []closedService, part topology.Snapshot) {
	part.Node = a.nodes[slices.IndexFunc(a.nodes, func(node string) bool {
		return slices.ContainsFunc(group[0].keys, func(key string) bool { return part.Nodes[node][key] != "" })
	})]
	view := topology.Resolve(part, a.config.Topology)
	for _, c := range group {
		left := map[topology.Reason]map[string]bool{} // the endpoints, with their Nodes
		for _, sp := range topology.PortsOf(view.Ports, explain.NameOf(c.service)) {
			for _, d := range view.Drops(sp) {
				if left[d.Reason] == nil {
					left[d.Reason] = map[string]bool{}
				}
				left[d.Reason][place(d.Endpoint)] = true
			}
		}
		a.unusableEndpoints(c, left)
	}
}

// place names an endpoint, without its port, which differs between the ports of a Service.
func place(e topology.Endpoint) string {
	if e.Node == "" {
		return e.Addr.Addr().String()
	}
	return e.Addr.Addr().String() + " on " + excerpt.Of(e.Node)
}

func (a *analysis) unusableEndpoints(c closedService, left map[topology.Reason]map[string]bool) {
	for _, kind := range []struct {
		reason              topology.Reason
		code, where, remedy string
	}{
		{topology.ReasonNoNodeName, withoutNodeName, "without nodeName", "set nodeName in the EndpointSlice, or open the Service"},
		{topology.ReasonUnknownEndpoint, onUnknownNode, "on an unknown Node",
			"correct nodeName in the EndpointSlice, or add the Node; endpoints of a deleted Node go with its Pods"},
		{topology.ReasonEndpointNoUnit, onNodeWithoutUnit, "on a Node that carries none of its keys (" + table.List(c.keys) + ")",
			"label the Node, or keep the Pods away from it"},
	} {
		if all := left[kind.reason]; len(all) > 0 {
			a.add(kind.code, c.service, func() (string, string) {
				return fmt.Sprintf("%s %s: no unit uses %s", count(len(all), "endpoint"), kind.where, table.List(slices.Sorted(maps.Keys(all)))), kind.remedy
			})
		}
	}
}

type portOf struct {
	closedService
	port corev1.ServicePort
}

// refusals finds the units whose clients are refused. A Service with several ports has a row for
// each of them: one may have endpoints where another has none.
func (a *analysis) refusals(group []closedService, part topology.Snapshot) {
	own := explain.SlicesOf(part)
	part.Services, part.Slices = nil, nil
	var rows []portOf // of the Matrix
	for _, c := range group {
		ports := c.service.Spec.Ports
		for i, port := range ports {
			svc, itsSlices := c.service, own[explain.NameOf(c.service)]
			if len(ports) > 1 {
				svc, itsSlices = onePort(svc, itsSlices, i)
			}
			part.Services, part.Slices = append(part.Services, svc), append(part.Slices, itsSlices...)
			rows = append(rows, portOf{c, port})
		}
	}
	m := matrix.New(part, a.config.Topology, part.Services)
	a.unitsLeftOut = max(a.unitsLeftOut, m.LeftOut)
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].service == rows[0].service {
			n++
		}
		a.refusal(m.Units, rows[:n], m.Services[:n])
		rows, m.Services = rows[n:], m.Services[n:]
	}
}

// onePort returns a Service and its EndpointSlices as if it had one of its ports only. The new
// name, which no other Service can have, is not printed.
func onePort(svc *corev1.Service, own []*topology.Slice, port int) (*corev1.Service, []*topology.Slice) {
	one := *svc
	one.Name = fmt.Sprintf("%s port %d", svc.Name, port)
	one.Spec.Ports = svc.Spec.Ports[port : port+1]
	renamed := make([]*topology.Slice, len(own))
	for i, slice := range own {
		other := *slice
		other.Service = one.Name
		renamed[i] = &other
	}
	return &one, renamed
}

// refusal finds the units that are refused by some port of one Service: on each of their Nodes.
// With several keys, a Node may be refused while others of its units are not.
func (a *analysis) refusal(units []matrix.Unit, ports []portOf, rows []matrix.Service) {
	refused := map[string][]string{} // units, by the ports that refuse them
	refusing, partly, all := 0, false, 0
	for i, unit := range units {
		if unit.Key == "" {
			continue // nodeWithoutKeys is about these Nodes
		}
		all++
		var by []string
		for n, row := range rows {
			if row.Cells[i].Answer == explain.Refused {
				by = append(by, portText(ports[n].port))
			}
		}
		if len(by) > 0 {
			refusing++
			partly = partly || len(by) < len(ports)
			id := table.List(by)
			refused[id] = append(refused[id], unit.String())
		}
	}
	switch c := ports[0]; {
	case refusing == 0:
	case refusing == all && !partly:
		a.add(refusedEverywhere, c.service, text(
			"no endpoint is usable in any unit: clients in all units are refused",
			"check that its selector matches Pods, that they are ready, and that they run on Nodes of the units"))
	default:
		a.add(unitRefused, c.service, func() (string, string) {
			return fmt.Sprintf("clients in %d of %d units are refused, because no endpoint is usable there: %s", refusing, all, refusedText(refused, partly)),
				"run a ready Pod in each of these units; if none is meant to be there, close the Service by other keys, or with " + topology.AnnotationPolicy + " Ordered and a wider key behind these"
		})
	}
}

func portText(port corev1.ServicePort) string {
	return strings.TrimSpace(fmt.Sprintf("%s %d/%s", port.Name, port.Port, cmp.Or(port.Protocol, corev1.ProtocolTCP)))
}

// refusedText lists units by the ports that refuse them, with the ports if these differ.
func refusedText(refused map[string][]string, withPorts bool) string {
	var parts []string
	for _, ports := range slices.Sorted(maps.Keys(refused)) {
		part := table.List(refused[ports])
		if withPorts {
			part += " (port " + ports + ")"
		}
		parts = append(parts, part)
	}
	return table.List(parts)
}
