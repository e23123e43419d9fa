package event

import (
	"fmt"
	"slices"

	"gridproxy/topology"
	"gridproxy/topology/dnsview"

	"k8s.io/apimachinery/pkg/types"
)

// NamesState is the last DNSView, as far as Events depend on it. The zero value is for the first
// one.
type NamesState struct {
	ports map[*topology.DNSService]*topology.ServicePort
	state State
}

// NextNames returns the Events about headless Services that Next returns about those with
// rules: malformed annotations and ignored fields. Of any Service it returns those about
// endpoints without names. s is the Snapshot that the DNSView was made from. A name without
// endpoints refuses no connection, so there is no Event about that.
func NextNames(prev NamesState, s topology.Snapshot, v topology.DNSView) (NamesState, []Event) {
	next := NamesState{ports: map[*topology.DNSService]*topology.ServicePort{}}
	view := topology.View{Node: v.Node}
	for _, svc := range v.Services {
		if svc.UnnamedWarning() == "" &&
			(svc.Kind != dnsview.Headless || svc.Closure.Malformed == "" && len(svc.Ignored)+len(svc.Warnings) == 0) {
			continue
		}
		port := prev.ports[svc]
		if port == nil {
			if port = standIn(s, svc); port == nil {
				continue
			}
		}
		next.ports[svc] = port
		view.Ports = append(view.Ports, port)
	}
	var events []Event
	prev.state.explain = explainName
	next.state, events = Next(prev.state, s, view)
	return next, events
}

func explainName(svc types.NamespacedName) string {
	return fmt.Sprintf("gridproxy explain --dns %s.%s.svc", svc.Name, svc.Namespace)
}

// standIn returns a Service as Next takes one: with a port, and without endpoints. It returns
// nil if the Snapshot does not have it.
func standIn(s topology.Snapshot, svc *topology.DNSService) *topology.ServicePort {
	object := find(s.Services, svc.Service)
	if object == nil {
		return nil
	}
	port := &topology.ServicePort{Name: topology.ServicePortName{NamespacedName: svc.Service}, Service: object, Slices: svc.Slices}
	if warning := svc.UnnamedWarning(); warning != "" { // an Event has the text of the first warning
		port.Warnings = []string{warning}
	}
	if svc.Kind == dnsview.Headless { // else Next says that
		port.Closure, port.Warnings = svc.Closure, slices.Concat(port.Warnings, svc.Warnings, svc.Ignored)
	}
	return port
}
