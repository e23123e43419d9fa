package watch

import (
	"cmp"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Scheme returns a scheme of the kinds that the daemon reads and writes, and no others. The
// Clientset of client-go knows every kind of Kubernetes, which is a third of a program and of
// what it holds at rest.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, discoveryv1.AddToScheme)
	return scheme, builder.AddToScheme(scheme)
}

// ForGroup makes a client for one API group. It speaks protobuf.
func ForGroup(c *rest.Config, shared *http.Client, scheme *runtime.Scheme, group schema.GroupVersion) (rest.Interface, error) {
	config := rest.CopyConfig(c)
	config.APIPath = "/apis"
	if group.Group == "" {
		config.APIPath = "/api"
	}
	config.GroupVersion = &group
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())
	return rest.RESTClientForConfigAndClient(config, shared)
}

// clients ask for each kind.
type clients struct {
	services, slices, node lister
	metadata               metadata.Interface // of Nodes
}

// newClients makes clients that share one connection and one limit of requests.
func newClients(c *rest.Config, shared *http.Client) (clients, error) {
	config := rest.CopyConfig(c)
	if shared == nil {
		var err error
		if shared, err = rest.HTTPClientFor(config); err != nil {
			return clients{}, err
		}
	}
	scheme, err := Scheme()
	if err != nil {
		return clients{}, err
	}
	if config.RateLimiter == nil && config.QPS > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, max(1, config.Burst))
	}
	core, err := ForGroup(config, shared, scheme, corev1.SchemeGroupVersion)
	if err != nil {
		return clients{}, err
	}
	discovery, err := ForGroup(config, shared, scheme, discoveryv1.SchemeGroupVersion)
	if err != nil {
		return clients{}, err
	}
	codec := runtime.NewParameterCodec(scheme)
	services := gentype.NewClientWithList("services", core, codec, metav1.NamespaceAll,
		func() *corev1.Service { return &corev1.Service{} }, func() *corev1.ServiceList { return &corev1.ServiceList{} }, gentype.PrefersProtobuf[*corev1.Service]())
	slices := gentype.NewClientWithList("endpointslices", discovery, codec, metav1.NamespaceAll,
		func() *discoveryv1.EndpointSlice { return &discoveryv1.EndpointSlice{} }, func() *discoveryv1.EndpointSliceList { return &discoveryv1.EndpointSliceList{} },
		gentype.PrefersProtobuf[*discoveryv1.EndpointSlice]())
	nodes := gentype.NewClientWithList("nodes", core, codec, metav1.NamespaceAll,
		func() *corev1.Node { return &corev1.Node{} }, func() *corev1.NodeList { return &corev1.NodeList{} }, gentype.PrefersProtobuf[*corev1.Node]())
	meta, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), shared)
	return clients{services: listerOf(services), slices: listerOf(slices), node: listerOf(nodes), metadata: meta}, err
}
