package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Kubelets stand in for the kubelets of all Nodes that were made with Add: they renew the Nodes'
// Leases, report Pods as running and ready as soon as these are bound, and end Pods at once when they
// are deleted. Pods of other Nodes are left alone. Safe for concurrent use.
//
// An image whose name begins with BrokenImages cannot be pulled: its Pod stays Pending.
type Kubelets struct {
	client   kubernetes.Interface
	podAddrs func(*corev1.Pod) []netip.Addr
	period   time.Duration // of renewing Leases
	queue    workqueue.TypedRateLimitingInterface[types.NamespacedName]
	running  sync.WaitGroup

	mu    sync.Mutex
	nodes map[string]*machine
	pods  map[types.NamespacedName]*corev1.Pod
	made  int // Nodes ever, for their addresses
}

// BrokenImages is how the name of an image begins that no kubelet can pull.
const BrokenImages = "broken.invalid/"

// workers is how many Pods are reconciled at the same time.
const workers = 16

// newKubelets works until ctx ends. wait then returns.
func newKubelets(ctx context.Context, config *rest.Config, o Options) (*Kubelets, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "kubelets"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the kubelets: %w", err)
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](20*time.Millisecond, time.Second)
	k := &Kubelets{
		client: client, podAddrs: o.PodAddrs,
		period: o.NodeGrace / 5, // a kubelet's own period is 10 s
		queue:  workqueue.NewTypedRateLimitingQueue(limiter),
		nodes:  map[string]*machine{}, pods: map[types.NamespacedName]*corev1.Pod{},
	}
	k.running.Go(func() { k.reflector().RunWithContext(ctx) })
	k.running.Go(func() { wait.UntilWithContext(ctx, k.renewLeases, k.period) })
	for range workers {
		k.running.Go(func() { k.work(ctx) })
	}
	k.running.Go(func() { <-ctx.Done(); k.queue.ShutDown() })
	return k, nil
}

func (k *Kubelets) wait() { k.running.Wait() }

// reflector is the one watch for all Nodes. After a failure it tries again soon, so that no test
// waits for a kubelet after an outage of the API server.
func (k *Kubelets) reflector() *cache.Reflector {
	bound := fields.OneTermNotEqualSelector("spec.nodeName", "")
	silent := logr.Discard()
	pods := cache.NewListWatchFromClient(k.client.CoreV1().RESTClient(), "pods", corev1.NamespaceAll, bound)
	lw := cache.ToListWatcherWithWatchListSemantics(pods, k.client)
	r := cache.NewReflectorWithOptions(lw, &corev1.Pod{}, (*podStore)(k), cache.ReflectorOptions{
		Name: "kubelets", Logger: &silent,
		Backoff: &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1, Steps: 1, Jitter: 0.1},
	})
	return r
}

func (k *Kubelets) work(ctx context.Context) {
	for {
		name, end := k.queue.Get()
		if end {
			return
		}
		if err := k.sync(ctx, name); err != nil {
			k.queue.AddRateLimited(name)
		} else {
			k.queue.Forget(name)
		}
		k.queue.Done(name)
	}
}

// podStore is where the watch writes to.
type podStore Kubelets

var errNotAPod = errors.New("the watch of Pods brings something else")

// Add notes a Pod and has it looked at.
func (s *podStore) Add(o any) error { return s.locked(o, s.put) }

// Update is Add.
func (s *podStore) Update(o any) error { return s.Add(o) }

// Delete forgets a Pod and frees its addresses.
func (s *podStore) Delete(o any) error { return s.locked(o, s.drop) }

func (s *podStore) locked(o any, do func(*corev1.Pod)) error {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("%w: %T", errNotAPod, o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	do(pod)
	return nil
}

// Replace notes a whole list.
func (s *podStore) Replace(list []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.pods
	s.pods = map[types.NamespacedName]*corev1.Pod{}
	for _, o := range list {
		pod, ok := o.(*corev1.Pod)
		if !ok {
			return fmt.Errorf("%w: %T", errNotAPod, o)
		}
		s.put(pod)
	}
	for name, pod := range old {
		if now := s.pods[name]; now == nil || now.UID != pod.UID {
			s.free(pod)
		}
	}
	return nil
}

// Resync has nothing to do: what is noted is all there is.
func (s *podStore) Resync() error { return nil }

func (s *podStore) put(pod *corev1.Pod) {
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	s.pods[name] = pod
	s.queue.Add(name)
}

func (s *podStore) drop(pod *corev1.Pod) {
	delete(s.pods, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	s.free(pod)
}

func (s *podStore) free(pod *corev1.Pod) {
	if m := s.nodes[pod.Spec.NodeName]; m != nil {
		m.addresses.free(pod.UID)
	}
}
