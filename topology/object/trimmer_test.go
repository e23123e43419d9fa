package object

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"gridproxy/rules"
	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

// TestTrimKeepsWhatIsRead: a trimmed cluster has the rules of the whole one, trimming it once more
// changes nothing, and the whole one is left as it was.
func TestTrimKeepsWhatIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.Snapshot(t)
		trim, trimmed, before := new(Trimmer), s, s
		trimmed.Services, before.Services = nil, nil
		for _, svc := range s.Services {
			before.Services = append(before.Services, svc.DeepCopy())
			once := trim.Service(svc)
			trimmed.Services = append(trimmed.Services, trim.Service(once))
			if diff := gocmp.Diff(once, trim.Service(once)); diff != "" {
				t.Fatalf("trimming twice is not trimming once:\n%s", diff)
			}
		}
		for _, slice := range s.Slices {
			whole := slice.Object()
			before := whole.DeepCopy()
			if got := trim.Slice(whole); !got.Equal(topology.NewSlice(whole)) || !equality.Semantic.DeepEqual(whole, before) {
				t.Fatalf("sharing names changed a Slice or what it was read from: %+v", got)
			}
		}
		same := gocmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{}), cmpopts.EquateEmpty()}
		if diff := gocmp.Diff(before, s, same); diff != "" {
			t.Fatalf("trimming changed what it was given:\n%s", diff)
		}
		compile := func(s topology.Snapshot) rules.Ruleset {
			return rules.Compile(topology.Resolve(s, topology.Config{}), rules.Config{})
		}
		if diff := gocmp.Diff(compile(s), compile(trimmed), same); diff != "" {
			t.Fatalf("other rules (-whole +trimmed):\n%s", diff)
		}
	})
}

// BenchmarkMemory is what a Snapshot of 5,000 Services with two endpoints each, and as many
// EndpointSlices, takes as decoded and as kept: bytes for each Service with its slice.
func BenchmarkMemory(b *testing.B) {
	const services = 5000
	for name, keep := range map[string]bool{"decoded": false, "kept": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				all := make([]any, 0, 2*services)
				trim := new(Trimmer)
				for i := range services {
					svc, slice := decoded(b, i)
					if keep {
						all = append(all, trim.Service(svc), trim.Slice(slice))
					} else {
						all = append(all, svc, slice)
					}
				}
				b.ReportMetric(float64(heap()-before)/services, "B/Service")
				runtime.KeepAlive(all)
			}
		})
	}
}

// TestAnnotationsThatChangeAreForgotten: 300 updates of an annotation of 250 kB, each another text,
// leave no trace; nor do 20,000 short ones.
func TestAnnotationsThatChangeAreForgotten(t *testing.T) {
	for _, test := range []struct{ updates, size int }{{300, 250_000}, {20_000, 900}} {
		trim := new(Trimmer)
		before := heap()
		for i := range test.updates {
			text := fmt.Sprintf("%0*d", test.size, i)
			trim.Service(&corev1.Service{ObjectMeta: metav1.ObjectMeta{
				Namespace:   text, // no API server takes one of this size, but every manifest has its own
				Annotations: map[string]string{topology.AnnotationKeys: text},
			}})
		}
		if grown := int64(heap()) - int64(before); grown > 3*cachedBytesMax {
			t.Errorf("%d updates of %d bytes: %d bytes are kept, want at most %d", test.updates, test.size, grown, 3*cachedBytesMax)
		}
		runtime.KeepAlive(trim)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// decoded are Service number i and its EndpointSlice, as an API server with a usual kubectl and
// controllers has them, and as they come off the wire.
func decoded(b *testing.B, i int) (*corev1.Service, *discoveryv1.EndpointSlice) {
	svc, slice := ordinary(i)
	text, err := svc.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	readService, readSlice := &corev1.Service{}, &discoveryv1.EndpointSlice{}
	if err := readService.Unmarshal(text); err != nil {
		b.Fatal(err)
	}
	if text, err = slice.Marshal(); err != nil {
		b.Fatal(err)
	}
	if err := readSlice.Unmarshal(text); err != nil {
		b.Fatal(err)
	}
	return readService, readSlice
}

func ordinary(i int) (*corev1.Service, *discoveryv1.EndpointSlice) {
	name := serviceName(i)
	now := metav1.Now()
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes(make([]byte, 600))
	meta := metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID("7f6c1a52-6a52-4b63-9c0c-" + name), ResourceVersion: name, CreationTimestamp: now,
		Labels:        map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "Helm"},
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: string(make([]byte, 500)), topology.AnnotationKeys: `["location"]`},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", Time: &now, FieldsV1: fields}},
	}
	svc := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: address("10.96", i), ClusterIPs: []string{address("10.96", i)},
		Selector: map[string]string{"app.kubernetes.io/name": name}, SessionAffinity: corev1.ServiceAffinityNone,
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack),
		InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
		Ports:                 []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}},
	}}
	meta.Name, meta.Annotations = name+"-x7k2p", map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-01-01T00:00:00Z"}
	meta.Labels = map[string]string{
		discoveryv1.LabelServiceName: name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io", "app.kubernetes.io/name": name,
	}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}}}
	for e := range 2 {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address("10.244", 2*i+e)}, NodeName: new(serviceName(i % 100)), Zone: new("zone-a"),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: name + "-5d4f8c7b9-abcde", UID: meta.UID},
		})
	}
	return svc, slice
}

func serviceName(i int) string { return fmt.Sprintf("service-%d", i) }

func address(net string, i int) string { return fmt.Sprintf("%s.%d.%d", net, i/250, i%250+1) }

// TestTextsLieTogether: the texts of an object are one piece of memory, and none of them is the
// decoder's.
func TestTextsLieTogether(t *testing.T) {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1234", ResourceVersion: "77"},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1", "fd00::1"}},
	}
	kept := new(Trimmer).Service(svc)
	texts := []string{kept.Name, string(kept.UID), kept.ResourceVersion}
	for i := 1; i < len(texts); i++ {
		before := unsafe.Pointer(unsafe.StringData(texts[i-1]))
		if unsafe.Add(before, len(texts[i-1])) != unsafe.Pointer(unsafe.StringData(texts[i])) {
			t.Errorf("%q is not behind %q", texts[i], texts[i-1])
		}
	}
	if unsafe.StringData(kept.Spec.ClusterIPs[1]) == unsafe.StringData(svc.Spec.ClusterIPs[1]) || kept.Spec.ClusterIPs[1] != "fd00::1" {
		t.Errorf("the cluster IP %q is the decoder's", kept.Spec.ClusterIPs[1])
	}
	slice := new(Trimmer).Slice(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-1", ResourceVersion: "78", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	})
	if end := unsafe.Add(unsafe.Pointer(unsafe.StringData(slice.Name)), len(slice.Name)); end != unsafe.Pointer(unsafe.StringData(slice.ResourceVersion)) {
		t.Errorf("%q is not behind %q", slice.ResourceVersion, slice.Name)
	}
}

// TestAnnotationsAreBounded: what a tenant writes into annotations takes little memory and disk,
// and means what it meant before.
func TestAnnotationsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for _, keys := range []string{`["location"]`, `["` + long + `"]`} {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			topology.AnnotationKeys: keys, topology.AnnotationPolicy: "Ordered", topology.AnnotationScheduler: "sh",
			"superedge.io/other": long, "example.com/other": long,
		}}}
		want, policy, wantErr := topology.ParseKeys(svc.Annotations)
		kept := new(Trimmer).Service(svc).Annotations
		bytes := 0
		for name, text := range kept {
			bytes += len(name) + len(text)
		}
		if bytes > topology.MaxAnnotationBytes+1000 || len(kept) != 3 {
			t.Errorf("%d annotations of %d bytes are kept", len(kept), bytes)
		}
		got, gotPolicy, gotErr := topology.ParseKeys(kept)
		if len(got) != len(want) || gotPolicy != policy || (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() {
			t.Errorf("keys %v, policy %s, error %v; want %v, %s, %v", got, gotPolicy, gotErr, want, policy, wantErr)
		}
	}
}

// TestMisnamedIsKept: of an annotation that was probably meant to be one that is read, the name is
// kept, so that the warning about it is the same as of the whole Service.
func TestMisnamedIsKept(t *testing.T) {
	svc := &corev1.Service{}
	svc.Annotations = map[string]string{"topologykeys": strings.Repeat("x", 200_000), "topologyKey": "y", "other": "z"}
	kept := new(Trimmer).Service(svc).Annotations
	if len(kept) != 1 || kept["topologyKey"] != "" {
		t.Errorf("%d annotations are kept: %.100v", len(kept), kept)
	}
	name, meant := topology.Misnamed(svc.Annotations, topology.ServiceAnnotations())
	if keptName, keptMeant := topology.Misnamed(kept, topology.ServiceAnnotations()); name != keptName || meant != keptMeant || meant != topology.AnnotationKeys {
		t.Errorf("%s is taken for %s, of the whole Service %s for %s", keptName, keptMeant, name, meant)
	}
}
