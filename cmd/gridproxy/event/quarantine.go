package event

import (
	"fmt"
	"strings"

	"gridproxy/rules"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
)

// Quarantined is one port of a Service whose rules the kernel of this node refuses, in one family.
type Quarantined struct {
	Service topology.ServicePortName
	Family  rules.Family
	Kept    bool   // its last good rules stay in force; else its addresses are rejected
	Reason  string // the kernel's words, shortened
}

// NextQuarantined compares the Services that the kernel of this node refuses with the previous
// ones. It returns one Event for each Service, and another one when a further family refuses it, or
// after it was released.
func NextQuarantined(prev Reported, v topology.View, now []Quarantined) (Reported, []Event) {
	if len(now) == 0 {
		return nil, nil
	}
	quarantined := byService(now, func(q Quarantined) topology.ServicePortName { return q.Service })
	return news(prev, v, func(ports []*topology.ServicePort) string {
		return which(quarantined[ports[0].Name.NamespacedName])
	}, func(ports []*topology.ServicePort, refused string) Event {
		first, does := quarantined[ports[0].Name.NamespacedName][0], "it is refused there at all its addresses"
		if first.Kept {
			does = "its last good rules stay there"
		}
		return Event{
			Reason: ReasonQuarantined,
			Message: fmt.Sprintf("node %s: the kernel there refuses the rules of %s, so %s; they are tried again at each verification (%s)",
				v.Node, refused, does, first.Reason),
		}
	})
}

// which names the first ports and families, such as "port http TCP of IPv4, port TCP of IPv6".
func which(list []Quarantined) string {
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

// NextWithoutAffinity returns one Event for each Service that asks for session affinity on a
// node whose kernel does not support it, and another one when these families change.
func NextWithoutAffinity(prev Reported, v topology.View, families []rules.Family) (Reported, []Event) {
	if len(families) == 0 {
		return nil, nil
	}
	return news(prev, v, func(ports []*topology.ServicePort) string {
		if ports[0].Service.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
			return ""
		}
		return fmt.Sprint(families)
	}, func([]*topology.ServicePort, string) Event {
		return Event{
			Reason: ReasonNoAffinity,
			Message: fmt.Sprintf("node %s: the kernel there lacks the match recent (module xt_recent), so the Service is served "+
				"without session affinity; install the module there, or set sessionAffinity to None", v.Node),
		}
	})
}
