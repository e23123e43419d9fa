//go:build !kubeproxy136 && !kubeproxy133

package agreement

import (
	"cmp"
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"unsafe"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/kubernetes"
	"github.com/coredns/coredns/plugin/kubernetes/object"
	corev1 "k8s.io/api/core/v1"
)

// corednsStanza is that of kubeadm, with CoreDNS' own default as TTL.
const corednsStanza = `kubernetes cluster.local in-addr.arpa ip6.arpa {
	pods insecure
	fallthrough in-addr.arpa ip6.arpa
}`

// newCoreDNS is the kubernetes plugin of CoreDNS, which reads these objects. addrs are those of the
// machine that it runs on.
func newCoreDNS(c dnsCluster, addrs []string, upstream kubernetes.Upstreamer, next plugin.Handler) (*kubernetes.Kubernetes, error) {
	controller := caddy.NewTestController("dns", corednsStanza)
	controller.Next()
	k, err := kubernetes.ParseStanza(controller)
	if err != nil {
		return nil, err
	}
	objects, err := newDNSObjects(c)
	if err != nil {
		return nil, err
	}
	k.APIConn, k.Upstream, k.Next = objects, upstream, next
	// Only the start of a whole server sets the addresses, which are those of the machine.
	field := reflect.ValueOf(k).Elem().FieldByName("localIPs")
	local := (*[]net.IP)(unsafe.Pointer(field.UnsafeAddr()))
	for _, a := range addrs {
		*local = append(*local, net.ParseIP(a))
	}
	return k, nil
}

// dnsObjects is what the plugin asks instead of its caches. The objects in it are converted by the
// plugin's own code. Lists are in the order of namespace and name: that of the caches is random.
type dnsObjects struct {
	namespaces map[string]*object.Namespace
	services   []*object.Service
	endpoints  []*object.Endpoints
}

func newDNSObjects(c dnsCluster) (*dnsObjects, error) {
	o := &dnsObjects{namespaces: map[string]*object.Namespace{}}
	for _, n := range c.Namespaces {
		converted, err := object.ToNamespace(n.DeepCopy()) // which empties what it converts
		if err != nil {
			return nil, err
		}
		o.namespaces[n.Name] = converted.(*object.Namespace)
	}
	for _, s := range c.Services {
		converted, err := object.ToService(s.DeepCopy())
		if err != nil {
			return nil, err
		}
		svc := converted.(*object.Service)
		if svc.ClusterIPs[0] == "" {
			svc.Ports = nil // CoreDNS makes a name of each port and address: this Service has no name
		}
		o.services = append(o.services, svc)
	}
	for _, s := range c.Slices {
		converted, err := object.EndpointSliceToEndpoints(s.DeepCopy())
		if err != nil {
			return nil, err
		}
		o.endpoints = append(o.endpoints, converted.(*object.Endpoints))
	}
	slices.SortFunc(o.services, func(a, b *object.Service) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return o, nil
}

func filtered[T any](all []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !keep(x) })
}

func (o *dnsObjects) SvcIndex(key string) []*object.Service {
	return filtered(o.services, func(s *object.Service) bool { return s.Index == key })
}

func (o *dnsObjects) SvcIndexReverse(ip string) []*object.Service {
	return filtered(o.services, func(s *object.Service) bool { return slices.Contains(s.ClusterIPs, ip) })
}

func (o *dnsObjects) EpIndex(key string) []*object.Endpoints {
	return filtered(o.endpoints, func(e *object.Endpoints) bool { return e.Index == key })
}

func (o *dnsObjects) EpIndexReverse(ip string) []*object.Endpoints {
	return filtered(o.endpoints, func(e *object.Endpoints) bool { return slices.Contains(e.IndexIP, ip) })
}

func (o *dnsObjects) GetNamespaceByName(name string) (*object.Namespace, error) {
	if n, found := o.namespaces[name]; found {
		return n, nil
	}
	return nil, errors.New("no such namespace")
}

func (o *dnsObjects) GetNodeByName(context.Context, string) (*corev1.Node, error) {
	return nil, errors.New("not asked for")
}

func (o *dnsObjects) ServiceList() []*object.Service                   { return o.services }
func (o *dnsObjects) EndpointsList() []*object.Endpoints               { return o.endpoints }
func (o *dnsObjects) ServiceImportList() []*object.ServiceImport       { return nil }
func (o *dnsObjects) SvcExtIndexReverse(string) []*object.Service      { return nil }
func (o *dnsObjects) SvcImportIndex(string) []*object.ServiceImport    { return nil }
func (o *dnsObjects) PodIndex(string) []*object.Pod                    { return nil }
func (o *dnsObjects) McEpIndex(string) []*object.MultiClusterEndpoints { return nil }
func (o *dnsObjects) Run()                                             {}
func (o *dnsObjects) HasSynced() bool                                  { return true }
func (o *dnsObjects) Stop() error                                      { return nil }
func (o *dnsObjects) Modified(kubernetes.ModifiedMode) int64           { return dnsSerial }
