package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// largeCluster is much larger than one unit: what does a node download and hold of it?
type largeCluster struct {
	nodes, units int
	services     int // all closed to units
	endpoints    int // of each Service, on Nodes of all units
	heartbeats   int // of Nodes of other units
}

// perSlice is how many endpoints the EndpointSlice controller puts into one slice.
const perSlice = 100

// download is what one program costs in a large cluster.
type download struct {
	start  int // bytes until everything was written
	beats  int // bytes during heartbeats of other units, without those of a quiet time as long
	memory memory
}

func runDownload(args []string) int {
	var c largeCluster
	return subcommand{
		name: "-nodes", limit: 30 * time.Minute,
		flags: func(fs *flag.FlagSet) {
			fs.IntVar(&c.nodes, "count", 10000, "Nodes")
			fs.IntVar(&c.units, "units", 100, "units of the same size, at least 2")
			fs.IntVar(&c.services, "services", 1000, "closed Services, at least 10")
			fs.IntVar(&c.endpoints, "endpoints", 200, "endpoints of each Service")
			fs.IntVar(&c.heartbeats, "heartbeats", 1000, "Nodes of other units that report once")
		},
		check: func() error {
			if c.units < 2 || c.nodes < c.units || c.services < 10 || c.endpoints < 1 || c.heartbeats < 1 {
				return errors.New("want at least 2 units, a Node in each, 10 Services, 1 endpoint and 1 heartbeat")
			}
			return nil
		},
		run: func(ctx context.Context) error { return c.compare(ctx) },
	}.start(args)
}

func (c largeCluster) compare(ctx context.Context) (err error) {
	w, err := newWorld(ctx, settings{startLimit: 15 * time.Minute})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	say("making %d Nodes and %d Services of %d endpoints", c.nodes, c.services, c.endpoints)
	w.vips = make([]netip.AddrPort, c.services)
	err = errors.Join(
		inParallel(ctx, c.nodes, func(number int) error { return c.addNode(ctx, w, number) }),
		inParallel(ctx, c.services, func(number int) error { return c.addService(ctx, w, number) }))
	if err != nil {
		return err
	}
	var of [2]download
	for i, p := range []proxy{kubeProxy, gridproxy} {
		say("%s", p)
		if of[i], err = c.measure(ctx, w, p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	fmt.Print(c.report(of[0], of[1], machine(context.WithoutCancel(ctx))))
	return nil
}

// measure starts a program, waits until it has written everything and has read it back twice,
// and lets Nodes of other units report.
func (c largeCluster) measure(ctx context.Context, w *world, p proxy) (of download, err error) {
	node := w.lab.Node(nodeOf(p, apiserver.Legacy))
	before, err := received(node)
	if err != nil {
		return of, err
	}
	d, _, err := w.start(p, apiserver.Legacy, "--verify-period=1s")
	if err != nil {
		return of, err
	}
	defer func() {
		err = errors.Join(err, d.alive())
		d.stop()
	}()
	if err := w.written(ctx, d); err != nil {
		return of, err
	}
	after, err := received(node)
	if err != nil {
		return of, err
	}
	of.start = after - before
	d.settled = time.Now()
	if of.memory, err = w.rest(ctx, d); err != nil {
		return of, err
	}
	quiet, err := c.during(node, func() error { time.Sleep(10 * settleTime); return nil })
	if err != nil {
		return of, err
	}
	beats, err := c.during(node, func() error {
		begin := time.Now()
		err := inParallel(ctx, c.heartbeats, func(number int) error { return c.heartbeat(ctx, w, c.nodeOfOtherUnit(number)) })
		if took := time.Since(begin); took < 10*settleTime {
			time.Sleep(10*settleTime - took)
		}
		return err
	})
	of.beats = max(0, beats-quiet)
	say("  %d bytes at the start, %d for heartbeats (%d while nothing happened), memory %d MiB", of.start, beats, quiet, of.memory.resident>>20)
	return of, err
}

// written waits until every Service has its chains.
func (w *world) written(ctx context.Context, d *daemon) error {
	ctx, cancel := context.WithTimeoutCause(ctx, w.startLimit, notServing{w.startLimit})
	defer cancel()
	for {
		entries, err := d.services(ctx)
		if err != nil || len(entries) >= len(w.vips) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), d.alive())
		case <-d.Done():
			return d.alive()
		case <-time.After(settleTime):
		}
	}
}

func (c largeCluster) during(node *netns.Node, f func() error) (int, error) {
	before, err := received(node)
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := received(node)
	return after - before, err
}

// inParallel calls f for 0 to n-1.
func inParallel(ctx context.Context, n int, f func(number int) error) error {
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for range 8 {
		workers.Go(func() {
			for number := range next {
				if err := f(number); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for number := 0; number < n && ctx.Err() == nil; number++ {
		next <- number
	}
	close(next)
	workers.Wait()
	return errors.Join(append(errs, context.Cause(ctx))...)
}

func (c largeCluster) nodeName(number int) string { return fmt.Sprintf("edge-%05d", number) }

// unitOf is the value of the unit's label. Unit 0 is that of the programs' nodes.
func (c largeCluster) unitOf(number int) string {
	if unit := number % c.units; unit > 0 {
		return fmt.Sprintf("site-%03d", unit)
	}
	return netns.Beijing
}

func (c largeCluster) nodeOfOtherUnit(i int) int {
	for number := i % c.nodes; ; number = (number + 1) % c.nodes {
		if number%c.units != 0 {
			return number
		}
	}
}

// addNode makes a Node with the metadata that a kubelet and the controllers give it.
func (c largeCluster) addNode(ctx context.Context, w *world, number int) error {
	name := c.nodeName(number)
	_, err := w.api.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			netns.UnitKey: c.unitOf(number), "kubernetes.io/hostname": name, "kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux",
			"beta.kubernetes.io/arch": "arm64", "beta.kubernetes.io/os": "linux", "node-role.kubernetes.io/edge": "",
		},
		Annotations: map[string]string{
			"node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed-attach-detach": "true",
			"flannel.alpha.coreos.com/backend-data": `{"VNI":1,"VtepMAC":"aa:bb:cc:dd:ee:ff"}`, "flannel.alpha.coreos.com/backend-type": "vxlan",
			"flannel.alpha.coreos.com/public-ip": fmt.Sprintf("172.16.%d.%d", number/250, number%250+1),
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making Node %s: %w", name, err)
	}
	return nil
}

func (c largeCluster) heartbeat(ctx context.Context, w *world, number int) error {
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","lastHeartbeatTime":%q}]}}`,
		time.Now().UTC().Format(time.RFC3339))
	_, err := w.api.CoreV1().Nodes().Patch(ctx, c.nodeName(number), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("reporting for Node %s: %w", c.nodeName(number), err)
	}
	return nil
}

// addService makes a closed Service, and slices with endpoints on Nodes of all units.
func (c largeCluster) addService(ctx context.Context, w *world, number int) error {
	name := nameOf(number)
	s, err := w.api.CoreV1().Services(namespace).Create(ctx, closedService(name), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making Service %s: %w", name, err)
	}
	addr, err := netip.ParseAddr(s.Spec.ClusterIP)
	if err != nil {
		return fmt.Errorf("reading the cluster IP of Service %s: %w", name, err)
	}
	w.vips[number] = netip.AddrPortFrom(addr, 80)
	for first := 0; first < c.endpoints; first += perSlice {
		slice := c.slice(name, number*c.endpoints+first, min(perSlice, c.endpoints-first))
		if _, err := w.api.DiscoveryV1().EndpointSlices(namespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making EndpointSlice %s: %w", slice.Name, err)
		}
	}
	return nil
}

// slice has n endpoints as the controller writes them; first is the number of the first one.
func (c largeCluster) slice(service string, first, n int) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", service, first), Labels: map[string]string{
			discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(answers)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for i := first; i < first+n; i++ {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}).String()},
			NodeName:  new(c.nodeName(i % c.nodes)),
			TargetRef: &corev1.ObjectReference{
				Kind: "Pod", Namespace: namespace, Name: fmt.Sprintf("%s-6d4cf56db6-%05d", service, i%100000),
				UID: types.UID(fmt.Sprintf("6f1d2c3b-4a59-4e68-8f77-%012d", i)),
			},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		})
	}
	return s
}

func (c largeCluster) report(theirs, ours download, facts []string) string {
	text := fmt.Sprintf("\n# %d Nodes in %d units, %d closed Services of %d endpoints\n\n", c.nodes, c.units, c.services, c.endpoints)
	text += "- " + strings.Join(facts, "\n- ") + "\n\n| | kube-proxy | gridproxy | ratio | target |\n|---|---|---|---|---|\n"
	row := func(name string, theirs, ours int, unit string, target float64) {
		ratio := float64(ours) / float64(max(1, theirs))
		text += fmt.Sprintf("| %s | %d %s | %d %s | %.2f | ≤ %.2f %s |\n", name, theirs, unit, ours, unit, ratio, target, metOrMissed(ratio <= target))
	}
	row("received at the start", theirs.start>>10, ours.start>>10, "KiB", 1)
	row("resident memory at rest", theirs.memory.resident>>20, ours.memory.resident>>20, "MiB", 0.8)
	text += fmt.Sprintf("| received for each heartbeat of another unit's Node, of %d | %d bytes | %d bytes | | 0 %s |\n",
		c.heartbeats, theirs.beats/c.heartbeats, ours.beats/c.heartbeats, metOrMissed(ours.beats/c.heartbeats == 0))
	return text
}
