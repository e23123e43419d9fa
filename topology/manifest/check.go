package manifest

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/topology"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkMeta checks an object's name and namespace and gives a namespaced one its default.
func checkMeta(f *findings, o metav1.Object, namespaced bool, validName func(string) []string) {
	switch {
	case !namespaced:
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(metav1.NamespaceDefault)
	default:
		f.valid(metadataPath.Child("namespace"), o.GetNamespace(), validation.IsDNS1123Label)
	}
	f.place.namespace, f.place.name = o.GetNamespace(), o.GetName()
	if o.GetName() == "" {
		f.wrong(metadataPath.Child("name"), "is missing; write one")
		return
	}
	f.valid(metadataPath.Child("name"), o.GetName(), validName)
}

// valid adds an error to f unless a text is valid by one of the API server's own rules.
func (f *findings) valid(path *field.Path, text string, rule func(string) []string) {
	messages := rule(text)
	for i := range messages {
		messages[i], _, _ = strings.Cut(messages[i], " (e.g.") // examples and a regular expression
	}
	if len(messages) > 0 {
		f.wrong(path, "%s is not valid: %s", excerpt.Quoted(text), strings.Join(messages, "; "))
	}
}

// oneOf gives an empty value the default unset, and adds an error to f if it is not allowed.
func oneOf[T ~string](f *findings, path *field.Path, value *T, unset T, allowed ...T) {
	*value = cmp.Or(*value, unset)
	if slices.Contains(allowed, *value) {
		return
	}
	texts := make([]string, len(allowed))
	for i, a := range allowed {
		texts[i] = string(a)
	}
	last := len(texts) - 1
	if *value == "" {
		f.wrong(path, "is missing; write %s or %s", strings.Join(texts[:last], ", "), texts[last])
		return
	}
	f.wrong(path, "is %s; write %s or %s", excerpt.Quoted(string(*value)), strings.Join(texts[:last], ", "), texts[last])
}

func (f *findings) protocol(path *field.Path, value *corev1.Protocol) {
	oneOf(f, path, value, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
}

// port checks a port number. If it is optional, 0 means none.
func (f *findings) port(path *field.Path, number int32, optional bool) {
	if number < 0 || number > 65535 || number == 0 && !optional {
		f.wrong(path, "is %d; write a port from 1 to 65535", number)
	}
}

// addr gives an IP address its usual spelling, or adds an error to f and returns false.
func (f *findings) addr(path *field.Path, text *string) (netip.Addr, bool) {
	addr, err := topology.ParseAddr(*text)
	if err != nil {
		f.wrong(path, "%v; write one such as 10.96.0.1 or fd00::1", err)
		return netip.Addr{}, false
	}
	*text = addr.String()
	return addr, true
}

// prefix gives a CIDR its usual spelling, host bits cleared, or adds an error to f.
func (f *findings) prefix(path *field.Path, text *string) {
	p, err := topology.ParsePrefix(*text)
	if err != nil {
		f.wrong(path, "%v; correct it", err)
		return
	}
	*text = p.String()
}

func familyOf(addr netip.Addr) corev1.IPFamily {
	if addr.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// unique adds an error to f for each value that comes again. called is its verb for fmt.
func unique(f *findings, path func(int) *field.Path, values []string, called string) {
	first := map[string]int{}
	for i, v := range values {
		if j, found := first[v]; found {
			f.wrong(path(i), "%s is that of %s too; change or remove one", fmt.Sprintf(called, v), path(j))
			continue
		}
		first[v] = i
	}
}

// The paths of most fields.
var (
	metadataPath = field.NewPath("metadata")
	specPath     = field.NewPath("spec")
)

// checkNamespace checks the name of a Namespace: no more is read. It returns true.
func checkNamespace(f *findings, n *metav1.PartialObjectMetadata) bool {
	checkMeta(f, n, false, validation.IsDNS1123Label)
	return true
}

// checkGrid checks the name of a StatefulSetGrid: no more is read. It returns true.
func checkGrid(f *findings, g *metav1.PartialObjectMetadata) bool {
	checkMeta(f, g, true, validation.IsDNS1123Subdomain)
	return true
}
