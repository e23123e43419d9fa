package agreement

import (
	"fmt"
	"slices"
	"strings"

	"gridproxy/rules/netfilter"
)

// refusedOutput is the one way in which gridproxy's rules differ from kube-proxy's on purpose:
// what the node itself sends to an external address of a closed Service without endpoints is
// refused too (decision 29). OUTPUT does not visit KUBE-EXTERNAL-SERVICES, so the rules that
// reject there exist in KUBE-SERVICES as well.
const refusedOutput = "the node's own packets to an external address of a closed Service without endpoints"

// expectOf is what gridproxy has to write, given what kube-proxy wrote: the same, and the rules of
// refusedOutput. It also says how many rules these are. NodePorts are not among them: what the
// node sends to its own addresses comes to INPUT.
func (c Cluster) expectOf(kubeProxy netfilter.Saved) (netfilter.Saved, int) {
	filter := kubeProxy.Table(netfilter.Filter)
	external, services := filter.Chain("KUBE-EXTERNAL-SERVICES"), filter.Chain("KUBE-SERVICES")
	if external == nil || services == nil {
		return kubeProxy, 0
	}
	added := 0
	for _, r := range external.Rules {
		name, rejects := strings.CutSuffix(r.Rule.Comment, " has no endpoints")
		if !rejects || r.Rule.Target != netfilter.TargetReject || r.Rule.DstLocal || !c.closed(name) {
			continue
		}
		r.Text = strings.Replace(r.Text, external.Name, services.Name, 1)
		services.Rules = append(slices.Clip(services.Rules), r)
		added++
	}
	return kubeProxy, added
}

// closed reports whether the Service of a port, "namespace/name:port", is confined.
func (c Cluster) closed(port string) bool {
	name, _, _ := strings.Cut(port, ":")
	for _, svc := range c.Services {
		if fmt.Sprint(svc.Namespace, "/", svc.Name) == name {
			keys, _, ok := readKeys(svc.Annotations)
			return !ok || len(keys) > 0
		}
	}
	return false
}
