package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology"
	"gridproxy/topology/dnsview"
	"gridproxy/topology/excerpt"
)

// renderNames returns, as text, what DNS answers on the Snapshot's node, with warnings for the
// operator. It returns errNoNames for a Snapshot without names.
func renderNames(s topology.Snapshot, o options.Options) (text []byte, warnings []string, err error) {
	if s.Namespaces == nil {
		return nil, nil, errNoNames
	}
	view := topology.ResolveDNS(s, o.Topology())
	if unknown := unknownNode(s); unknown != "" {
		warnings = append(warnings, unknown)
	}
	var b bytes.Buffer
	for _, namespace := range view.Namespaces {
		fmt.Fprintf(&b, "Namespace %s\n", excerpt.Of(namespace))
	}
	for _, svc := range view.Services {
		for _, w := range svc.Doubts() {
			warnings = append(warnings, fmt.Sprintf("Service %s: %s", svc.Service, w))
		}
		writeNames(&b, svc)
	}
	return b.Bytes(), warnings, nil
}

// writeNames writes one Service. Every list is sorted already, or in the order of the Service.
func writeNames(b *bytes.Buffer, svc *topology.DNSService) {
	fmt.Fprintf(b, "Service %s %s", svc.Service, svc.Kind)
	if len(svc.Closure.Keys) > 0 {
		fmt.Fprintf(b, " keys=%s", strings.Join(svc.Closure.Keys, ","))
	}
	fmt.Fprintln(b)
	for _, addr := range svc.ClusterIPs {
		fmt.Fprintf(b, "  clusterIP %s\n", addr)
	}
	if svc.ExternalName != "" {
		fmt.Fprintf(b, "  externalName %s\n", svc.ExternalName)
	}
	if len(svc.Ports) > 0 {
		fmt.Fprintf(b, "  ports %s\n", portTexts(svc.Ports))
	}
	for _, e := range svc.Endpoints {
		fmt.Fprintf(b, "  endpoint %s %s node=%s ports=%s\n", e.Hostname, e.Addr, excerpt.Of(e.Node), portTexts(e.Ports))
	}
	for _, a := range svc.Aliases {
		fmt.Fprintf(b, "  alias %s = %s\n", a.Alias, a.Hostname)
	}
}

func portTexts(ports []dnsview.Port) string {
	texts := make([]string, len(ports))
	for i, p := range ports {
		number := fmt.Sprint(p.Number)
		if p.Number == dnsview.NoPort {
			number = "-"
		}
		texts[i] = strings.TrimPrefix(excerpt.Of(p.Name)+":", ":") + number + "/" + p.Protocol
	}
	return strings.Join(texts, ",")
}

// errNoNames means that a saved state has no names. Other sources are asked for names.
var errNoNames = errors.New("the state has no names: the daemon that saved it ran without --local-dns; give --manifests, or an API server")
