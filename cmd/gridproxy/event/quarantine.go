package event

import (
	"fmt"
	"strings"

	"gridproxy/rules/iptables"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
)

// NextQuarantined compares which Services the kernel of this node refuses with those before, and
// returns what to tell: each Service once, until it is refused in another family or released.
func NextQuarantined(prev Told, v topology.View, now []iptables.Quarantined) (Told, []Event) {
	if len(now) == 0 {
		return nil, nil
	}
	refused := byService(now, func(q iptables.Quarantined) topology.ServicePortName { return q.Service })
	next, changed := news(prev, v, func(ports []*topology.ServicePort) string {
		return which(refused[ports[0].Name.NamespacedName])
	})
	var events []Event
	for _, ports := range changed {
		name := ports[0].Name.NamespacedName
		does := "it is refused there at all its addresses"
		if refused[name][0].Kept {
			does = "its last good rules stay there"
		}
		events = append(events, Event{
			Service: ports[0].Service,
			Reason:  ReasonQuarantined,
			Message: fmt.Sprintf("node %s: the kernel there refuses the rules of %s, so %s; they are tried again at each verification (%s)",
				v.Node, next[name], does, refused[name][0].Reason),
		})
	}
	return next, events
}

// which names ports and families, such as "port http (IPv4, IPv6)".
func which(list []iptables.Quarantined) string {
	const most = 4
	var names []string
	for _, q := range list[:min(most, len(list))] {
		names = append(names, strings.TrimSpace(fmt.Sprintf("port %s %s of %s", q.Service.Port, q.Service.Protocol, q.Family)))
	}
	if more := len(list) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// NextWithoutAffinity returns an Event for each Service that asks for session affinity on a node
// whose kernel cannot give it, once.
func NextWithoutAffinity(prev Told, v topology.View, families []netfilter.Family) (Told, []Event) {
	if len(families) == 0 {
		return nil, nil
	}
	next, changed := news(prev, v, func(ports []*topology.ServicePort) string {
		if ports[0].Service.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
			return ""
		}
		return fmt.Sprint(families)
	})
	var events []Event
	for _, ports := range changed {
		events = append(events, Event{
			Service: ports[0].Service,
			Reason:  ReasonNoAffinity,
			Message: fmt.Sprintf("node %s: the kernel there lacks the match recent (module xt_recent), so the Service is served "+
				"without session affinity; install the module there, or set sessionAffinity to None", v.Node),
		})
	}
	return next, events
}
