package watch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"gridproxy/topology"
	"gridproxy/topology/object"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// ClusterConfig says which API server to watch, and for whom.
type ClusterConfig struct {
	Rest *rest.Config // address, credentials, QPS and user agent; not changed
	HTTP *http.Client // made for Rest, so that others can use its connection too; nil = one of its own
	Node string       // this node's name; "" = there is none, and all Nodes are watched

	// ServiceProxyName is topology.Config's: Services that it leaves to others are not asked for.
	ServiceProxyName string

	// DNS also watches what names are made of: headless Services, their EndpointSlices, Services of
	// other proxies, Namespaces and StatefulSetGrids.
	DNS bool

	// AllServices also reads the Services that no rules are written for here: headless ones and those
	// of other proxies. DNS does so too.
	AllServices bool

	// Written reports whether the kernel holds rules of a service proxy. Only where it does not, the
	// first Snapshot waits no longer than 30 s for the Nodes of a unit. nil = it does not.
	Written func() bool

	// LastKeys are the topology keys that an earlier process read, by Service: the Nodes of the units
	// that they name are watched too. nil = none are known.
	LastKeys map[types.UID][]string

	// Silence listens to the connections of HTTP. nil = only failed requests tell of an outage.
	Silence *Silence

	Log *slog.Logger // logs each outage of the API server and its end once; nil = no log
}

// Cluster is the Source that watches an API server. It only lists and watches Services,
// EndpointSlices and Nodes. Of other Nodes it requests the metadata of those that share a unit with
// this Node, under the topology keys that Services name: see unitPlan.
//
// It keeps only the fields that gridproxy reads. An update of any other field changes no pointer
// and signals nothing. Its selectors are kube-proxy's: it does not request headless Services,
// their EndpointSlices, nor Services of another proxy (KEP-2447). With DNS there are no selectors,
// because every Service has a name; with AllServices only headless EndpointSlices are left out. It
// requests EndpointSlices of other proxies' Services, because the label of a slice follows that of
// its Service late or never.
//
// HTTP/2 pings detect a dead connection that was not closed. client-go sends a ping after 30 s
// without data, after 15 s with PingSooner, and gives up 15 s later. Its environment variables
// HTTP2_READ_IDLE_TIMEOUT_SECONDS and HTTP2_PING_TIMEOUT_SECONDS change that.
type Cluster struct {
	node    string
	changed pulse
	// reflectors log each watch that ends, for people who know client-go. An outage logs the
	// relevant facts once.
	reflectors klog.Logger
	services   *collection[corev1.Service, *corev1.Service]
	slices     *collection[topology.Slice, *topology.Slice]
	self       *collection[corev1.Node, *corev1.Node]
	names      *nameWatches // nil without DNS
	away       *outage
	sliceAway  *outage // of EndpointSlices alone
	silence    *Silence

	mu    sync.Mutex
	read  bool // services, slices, self and names have been read once
	nodes *nodeWatches
}

// NewCluster makes the Source. Nothing is requested from the API server before Run.
func NewCluster(c ClusterConfig) (*Cluster, error) {
	of, err := newClients(c.Rest, c.HTTP)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", c.Rest.Host, err)
	}
	return newClusterWithClients(c, of)
}

// debug is the verbosity that logr turns into slog's level Debug.
const debug = 4

// handedTo returns the label selector of the Services that a proxy serves; "" is kube-proxy's
// name.
func handedTo(proxy string) string {
	if proxy == "" {
		return "!" + topology.LabelServiceProxyName
	}
	return topology.LabelServiceProxyName + "=" + proxy
}

// selectors returns the options to list Services and EndpointSlices with.
func (c ClusterConfig) selectors() (services, slices metav1.ListOptions) {
	if c.DNS {
		return services, slices
	}
	if !c.AllServices {
		services = metav1.ListOptions{LabelSelector: handedTo(c.ServiceProxyName), FieldSelector: "spec.clusterIP!=" + corev1.ClusterIPNone}
	}
	return services, metav1.ListOptions{LabelSelector: "!" + topology.LabelHeadless}
}

func newClusterWithClients(c ClusterConfig, of clients) (*Cluster, error) {
	log := cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	cluster := &Cluster{node: c.Node, changed: newPulse(), silence: c.Silence, reflectors: logr.FromSlogHandler(log.Handler()).V(debug)}
	trim := &object.Trimmer{Names: c.DNS}
	ofServices, ofSlices := c.selectors()
	away := newOutage(log)
	cluster.away, cluster.sliceAway = away, newOutage(slog.New(slog.DiscardHandler))
	var err error
	if cluster.services, err = newCollection(access{
		what:    "Services",
		options: ofServices,
		lister:  of.services,
		outages: []*outage{away},
	}, apiKind(trim.Service), cluster.changed); err != nil {
		return nil, err
	}
	if cluster.slices, err = newCollection(access{
		what:    "EndpointSlices",
		options: ofSlices,
		lister:  of.slices,
		outages: []*outage{away, cluster.sliceAway},
	}, sliceKind(trim), cluster.changed); err != nil {
		return nil, err
	}
	cluster.nodes = newNodeWatches(cluster.changed, away, func(u unit) (*nodeCollection, error) {
		return newCollection(access{
			what:    u.what(),
			options: metav1.ListOptions{LabelSelector: u.selector()},
			lister:  listerOf(of.metadata.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))),
			outages: []*outage{away},
		}, apiKind(trim.Metadata), cluster.changed)
	}, log)
	cluster.nodes.nodeless, cluster.nodes.named.saved = c.Node == "", c.LastKeys
	if c.Written != nil {
		cluster.nodes.written = c.Written
	}
	cluster.self, err = newCollection(access{
		what:    "Node " + c.Node,
		options: metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, c.Node).String()},
		lister:  of.node,
		outages: []*outage{away},
	}, apiKind(trim.Node), cluster.changed)
	if err == nil && c.DNS {
		cluster.names, err = newNameWatches(of, trim, cluster.changed, log)
	}
	return cluster, err
}

// Run watches until ctx ends; it then returns nil. A Cluster runs once.
func (c *Cluster) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, c.reflectors)
	c.nodes.start(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	runs := []func(context.Context){c.services.run, c.slices.run, c.self.run, c.nodes.run}
	if c.names != nil {
		runs = append(runs, c.names.namespaces.run, c.names.grids.run)
	}
	for _, run := range runs {
		running.Go(func() { run(ctx) })
	}
	for _, read := range []<-chan struct{}{c.services.read(), c.slices.read(), c.self.read()} {
		select {
		case <-read:
		case <-ctx.Done():
			return nil
		}
	}
	if c.names != nil && !c.names.read(ctx) {
		return nil
	}
	c.mu.Lock()
	c.read = true
	c.mu.Unlock()
	c.changed.send()
	return nil
}

// Snapshot returns the last known state of the cluster. Services and the labels of this Node
// decide which Nodes are watched, so each call starts and ends watches. It is false until these
// have read everything once.
func (c *Cluster) Snapshot() (topology.Snapshot, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.read {
		return topology.Snapshot{}, false
	}
	s := topology.Snapshot{Node: c.node}
	s.Services, _ = c.services.list()
	s.Slices, _ = c.slices.list()
	if self, _ := c.self.list(); len(self) > 0 {
		s.Self = self[0]
	}
	if !c.nodes.follow(time.Now(), s.Services, s.Self, c.self.lost()) {
		return topology.Snapshot{}, false
	}
	s.Nodes, s.Watched = c.nodes.known(c.node)
	if c.names != nil {
		s.Namespaces, s.Grids = c.names.list()
	}
	return s, true
}

// Changed receives after something that a Snapshot holds has changed.
func (c *Cluster) Changed() <-chan struct{} { return c.changed }

// NodeWatches counts the running watches for Nodes: for the Nodes of one unit each, and for all
// Nodes. Safe for concurrent use.
func (c *Cluster) NodeWatches() (units, all int) {
	return int(c.nodes.units.Load()), int(c.nodes.all.Load())
}

// Lost returns since when, and why, some kind cannot be read from the API server, as failed
// requests and the Silence report it. What happened since then is not known. Zero = all kinds
// can be read. Safe for concurrent use.
func (c *Cluster) Lost() Loss {
	now, _ := c.silence.extend(c.away.now(), c.away.last(), time.Now())
	return now
}

// Losses returns the present loss of EndpointSlices, and the last one that is over: only then
// may what is known of endpoints be old. Another kind may always fail, such as for a missing
// right. Safe for concurrent use.
func (c *Cluster) Losses() (now Loss, last PastLoss) {
	return c.silence.extend(c.sliceAway.now(), c.sliceAway.last(), time.Now())
}
