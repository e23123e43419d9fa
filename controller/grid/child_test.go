package grid

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// served are children as an API server encodes them, numbered, in a media type.
func served(t testing.TB, mediaType string) func(number int) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/deployment.yaml")
	if err == nil {
		text, err = yaml.YAMLToJSONStrict(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	encode := encoder(t, mediaType)
	return func(number int) []byte {
		var d appsv1.Deployment
		replace := strings.NewReplacer("UNIT", fmt.Sprintf("unit-%05d", number), "NUMBER", fmt.Sprintf("%06d", number))
		if err := json.Unmarshal([]byte(replace.Replace(string(text))), &d); err != nil {
			t.Fatal(err)
		}
		return encode(&d)
	}
}

// encoder encodes as an API server does.
func encoder(t testing.TB, mediaType string) func(apiruntime.Object) []byte {
	t.Helper()
	codecs := serializer.NewCodecFactory(scheme.Scheme)
	info, found := apiruntime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	if !found {
		t.Fatalf("%s is not supported", mediaType)
	}
	codec := codecs.EncoderForVersion(info.Serializer, schema.GroupVersions{appsv1.SchemeGroupVersion, corev1.SchemeGroupVersion})
	return func(o apiruntime.Object) []byte {
		text, err := apiruntime.Encode(codec, o)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
}

// decoder decodes as the client of a manager does.
func decoder(t testing.TB) func([]byte) apiruntime.Object {
	t.Helper()
	s, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	d := serializer.NewCodecFactory(s).UniversalDeserializer()
	return func(text []byte) apiruntime.Object {
		o, err := apiruntime.Decode(d, text)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
}

// TestChildrenInTheCacheAreSmall: a Deployment costs at most 1.5 kB in the cache, its indexes
// included. As the type of the API it costs 4.8 kB, though most of its fields are empty.
func TestChildrenInTheCacheAreSmall(t *testing.T) {
	const count = 10_000
	index := func(o any) ([]string, error) { // as controller-runtime does it
		key := ownerKeys(o.(child).read())[0]
		return []string{"__all_namespaces/" + key, "default/" + key}, nil
	}
	encoded, decode := served(t, apiruntime.ContentTypeProtobuf), decoder(t)
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "field:grid": index})
	fill := func(from, to int) {
		for i := from; i < to; i++ {
			o, err := trim(decode(encoded(i)))
			if err == nil {
				err = store.Add(o)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(0, 1000) // what is made once, such as tables of the decoders
	before := heap()
	fill(1000, 1000+count)
	each := (heap() - before) / count
	runtime.KeepAlive(store)
	if t.Logf("%d bytes", each); each > 1500 || each < 500 {
		t.Errorf("a child costs %d bytes", each)
	}
}

func heap() int {
	runtime.GC()
	runtime.GC() // frees what had finalizers and weak pointers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) //nolint:gosec // far below 2^63
}

// TestDecoded: from JSON and protobuf, alone and in a list, the same is read of a child as of the
// API type, without labels and annotations of other domains.
func TestDecoded(t *testing.T) {
	var d appsv1.Deployment
	if err := json.Unmarshal(served(t, apiruntime.ContentTypeJSON)(7), &d); err != nil {
		t.Fatal(err)
	}
	meta := d.ObjectMeta
	decode := decoder(t)
	for _, o := range []client.Object{
		&d,
		&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(3)), Template: d.Spec.Template, VolumeClaimTemplates: make([]corev1.PersistentVolumeClaim, 2),
		}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-svc", Labels: map[string]string{v1.LabelSelector: "web"}}, Spec: corev1.ServiceSpec{ClusterIP: "None"}},
	} {
		for i := range o.GetOwnerReferences() {
			o.GetOwnerReferences()[i].Kind = string(gridKind(o))
		}
		want, err := live(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, mediaType := range []string{apiruntime.ContentTypeJSON, apiruntime.ContentTypeProtobuf} {
			encode := encoder(t, mediaType)
			got := decode(encode(o)).(child)
			if diff := cmp.Diff(want, got.read(), cmp.AllowUnexported(expand.Pairs{})); diff != "" {
				t.Errorf("%T from %s (-want +got)\n%s", o, mediaType, diff)
			}
			if got.GetName() != o.GetName() || got.GetNamespace() != "default" || got.GetUID() != o.GetUID() || got.GetResourceVersion() != o.GetResourceVersion() {
				t.Errorf("%T from %s is %s/%s", o, mediaType, got.GetNamespace(), got.GetName())
			}
			if got.GetLabels() != nil || got.GetManagedFields() != nil {
				t.Errorf("%T from %s has its labels twice", o, mediaType)
			}
			if copied := got.DeepCopyObject().(child); cmp.Diff(copied.read(), got.read(), cmp.AllowUnexported(expand.Pairs{})) != "" || copied.owner() != got.owner() {
				t.Errorf("a copy of a %T differs", o)
			}
			if _, err := json.Marshal(got); err == nil {
				t.Errorf("what was kept of a %T can be written", o)
			}
		}
	}
}

// TestDecodedLists: the version of a list is where a watch begins, and its continuation is the
// rest.
func TestDecodedLists(t *testing.T) {
	list := &appsv1.DeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "77", Continue: "more", RemainingItemCount: new(int64(5))}}
	for i := range 3 {
		var d appsv1.Deployment
		if err := json.Unmarshal(served(t, apiruntime.ContentTypeJSON)(i), &d); err != nil {
			t.Fatal(err)
		}
		list.Items = append(list.Items, d)
	}
	for _, mediaType := range []string{apiruntime.ContentTypeJSON, apiruntime.ContentTypeProtobuf} {
		got := decoder(t)(encoder(t, mediaType)(list)).(*deploymentList)
		if got.ResourceVersion != "77" || got.Continue != "more" || *got.RemainingItemCount != 5 || len(got.Items) != 3 || got.Items[2].Name != "web-unit-00002" {
			t.Errorf("from %s: %+v", mediaType, got.ListMeta)
		}
		if copied := got.DeepCopyObject().(*deploymentList); copied.Items[1].owner() != "web" || copied.Continue != "more" {
			t.Errorf("a copy has %+v", copied.ListMeta)
		}
	}
}

// TestBookmarks: that of a watch which has sent all that exists says so.
func TestBookmarks(t *testing.T) {
	mark := map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", Annotations: mark}}
	got := decoder(t)(encoder(t, apiruntime.ContentTypeProtobuf)(d)).(child)
	if got.GetResourceVersion() != "7" || !maps.Equal(got.GetAnnotations(), mark) {
		t.Errorf("version %s, annotations %v", got.GetResourceVersion(), got.GetAnnotations())
	}
}

// TestCompleted: a Deployment whose rollout was complete once had ready Pods, also if it has none
// now.
func TestCompleted(t *testing.T) {
	for reason, want := range map[string]bool{"NewReplicaSetAvailable": true, progressDeadline: false, "ReplicaSetUpdated": false} {
		d := &appsv1.Deployment{}
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable}, {Type: appsv1.DeploymentProgressing, Reason: reason}}
		l, err := live(d)
		if err != nil || l.Completed != want {
			t.Errorf("%s: completed is %v, want %v; %v", reason, l.Completed, want, err)
		}
	}
}

// TestPausedChild: what kubectl rollout pause writes is read.
func TestPausedChild(t *testing.T) {
	if l, err := live(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Paused: true}}); err != nil || !l.Paused {
		t.Errorf("paused is %v: %v", l.Paused, err)
	}
}
