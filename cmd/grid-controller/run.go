package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/cmd/command/klogbridge"
	"gridproxy/cmd/grid-controller/migrate"
	"gridproxy/controller/api/site/v1alpha2"
	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/federation/agent"
	"gridproxy/controller/federation/hub"
	"gridproxy/controller/grid"
	"gridproxy/controller/site"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func newRun(std command.Stdio) *cobra.Command {
	o := defaults()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Keep the children of all Grids what they should be",
		Long: `Watch Grids, their children and Nodes, and keep the children equal to what the Grids ask for.
Watch NodeUnits and NodeGroups, and keep the labels, annotations and taints of Nodes equal to
what these ask for, unless --node-units=false. Runs until SIGTERM or SIGINT; SIGHUP is ignored.

Several replicas can run: the one that holds the Lease works, the others stand by with filled
caches. If CustomResourceDefinitions are missing, it waits for them, separately for those of Grids
and those of NodeUnits. The child of a unit without Nodes is kept for --unit-removal-grace.`,
		Example: `  grid-controller run
  grid-controller run --kubeconfig ~/.kube/config --leader-elect=false --unit-removal-grace never`,
		Args:    command.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return command.NewUsageError(o.check()) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return runController(cmd.Context(), o, std) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

type metrics struct {
	grids *grid.Metrics
	sites *site.Metrics
	fleet *hub.Metrics
}

func runController(ctx context.Context, o options, std command.Stdio) error {
	log := command.NewLog(std.Err, o.logFormat, o.verbosity)
	command.IgnoreHangup(ctx, log)
	if err := bridgeLogs(log, o.verbosity); err != nil {
		return err
	}
	config, inCluster, err := restConfig(o)
	if err != nil {
		return err
	}
	all := metrics{grids: grid.NewMetrics(), sites: site.NewMetrics(), fleet: hub.NewMetrics()}
	collectors := []prometheus.Collector{all.grids, all.sites}
	if o.federation == federationHub {
		collectors = append(collectors, all.fleet)
	}
	for _, c := range collectors {
		if err := crmetrics.Registry.Register(c); err != nil { // which the manager serves
			return fmt.Errorf("registering metrics: %w", err)
		}
		defer crmetrics.Registry.Unregister(c)
	}
	lease, err := newLease(config, o, inCluster)
	if err != nil {
		return err
	}
	namespace, err := ownNamespace(o, inCluster)
	if err != nil {
		return err
	}
	m, err := newManager(federation{options: o, config: config, namespace: namespace, metrics: all.fleet, log: log}, lease, all)
	if err != nil {
		return err
	}
	b := command.ThisBuild()
	log.Info("starting", "version", b.Version, "commit", b.Commit, "leader-elect", o.leaderElect)
	if err := m.Start(ctx); err != nil {
		return fmt.Errorf("running the controller: %w", err)
	}
	log.Info("stopped; Grids are unchanged")
	return nil
}

// restConfig returns the configuration of --kubeconfig, or, without the flag, that of a Pod,
// and reports which: inCluster is true for a Pod. All clients of it share one rate limit.
func restConfig(o options) (config *rest.Config, inCluster bool, err error) {
	if o.kubeconfig == "" {
		config, err = rest.InClusterConfig()
		inCluster = true
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	}
	if err != nil {
		return nil, false, fmt.Errorf("finding the API server: %w; give --kubeconfig, or run as a Pod with a ServiceAccount", err)
	}
	// Without it each client has a limit of its own, and there is one for each kind of object.
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(o.qps, o.burst)
	config.UserAgent = "grid-controller/" + command.ThisBuild().Version
	return config, inCluster, nil
}

// newManager returns a manager that starts the controllers when the API server serves their
// resources. lease is nil without leader election.
func newManager(f federation, lease resourcelock.Interface, metrics metrics) (manager.Manager, error) {
	config, o, log := f.config, f.options, f.log
	scheme, err := newScheme(o)
	if err != nil {
		return nil, fmt.Errorf("preparing the controller: %w", err)
	}
	cache := grid.CacheOptions(o.namespaces)
	cache.ByObject = site.ByObject(cache.DefaultTransform)
	if o.federation == federationHub {
		maps.Copy(cache.ByObject, hub.ByObject())
		maps.Copy(cache.ByObject, grid.FleetObjects())
	}
	m, err := manager.New(config, manager.Options{
		Scheme: scheme, Cache: cache, Logger: logr.FromSlogHandler(log.Handler()),
		LeaderElection: o.leaderElect, LeaderElectionResourceLockInterface: lease,
		LeaderElectionReleaseOnCancel: true, // the process ends when Start returns
		LeaseDuration:                 &o.leaseDuration, RenewDeadline: &o.renewDeadline, RetryPeriod: &o.retryPeriod,
		Metrics:                metricsserver.Options{BindAddress: o.metrics.orNone()},
		HealthProbeBindAddress: o.healthz.orNone(),
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the controller: %w", err)
	}
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to ask for the CustomResourceDefinitions: %w", err)
	}
	definitions, err := migrate.NewCheck(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to look at the CustomResourceDefinitions: %w", err)
	}
	fleet, err := f.add(m)
	if err != nil {
		return nil, err
	}
	if err := m.Add(givenNamespaces{live: m.GetAPIReader(), names: o.namespaces, log: log}); err != nil {
		return nil, fmt.Errorf("preparing to look for the namespaces of --namespaces: %w", err)
	}
	all := starters(m, o, metrics)
	if fleet != nil {
		all = append(all, fleet)
	}
	if o.federation == federationHub {
		all[0].after = fleet // Grids have the states of other clusters
	}
	for _, s := range all {
		s.api, s.definitions, s.log = api, definitions, log
		if err := m.Add(s); err != nil {
			return nil, fmt.Errorf("preparing the controllers of %s: %w", s.what, err)
		}
		if err := m.AddReadyzCheck(s.check, s.ready); err != nil {
			return nil, fmt.Errorf("preparing /readyz: %w", err)
		}
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("preparing /healthz: %w", err)
	}
	return m, nil
}

// newScheme returns a scheme with the kinds that the controllers read and write.
func newScheme(o options) (*runtime.Scheme, error) {
	scheme, err := grid.Scheme()
	if err == nil {
		err = v1alpha2.AddToScheme(scheme)
	}
	if err == nil && o.federation != federationOff {
		err = agent.AddToScheme(scheme)
	}
	return scheme, err
}

// starters returns a starter for Grids, and then one for NodeUnits and NodeGroups, so that they
// start separately. Users who label Nodes themselves, or migrate from SuperEdge one half at a
// time, have Grids without NodeUnits. With --node-units=false, there is no second one.
func starters(m manager.Manager, o options, metrics metrics) []*starter {
	grace := time.Duration(o.grace)
	grids := &starter{
		what: "Grids", check: v1.Group, group: v1.GroupVersion(), resources: []string{"deploymentgrids", "servicegrids", "statefulsetgrids"},
		add: func(ctx context.Context) error {
			return grid.Add(ctx, m, grid.Config{
				Grace: grace, Budget: o.budget, MaxUnits: o.maxUnits, NewUnits: o.newUnits, Namespaces: o.namespaces,
				Fleet: o.federation == federationHub, Now: time.Now, Metrics: metrics.grids,
			})
		},
	}
	if !o.nodeUnits {
		return []*starter{grids}
	}
	return []*starter{grids, {
		what: "NodeUnits and NodeGroups", check: v1alpha2.Group, group: v1alpha2.GroupVersion(), resources: []string{"nodegroups", "nodeunits"},
		add: func(context.Context) error {
			return site.Add(m, site.Config{
				Grace: grace, Budget: o.budget, MaxUnits: o.maxUnits, NewUnits: o.newUnits, DefaultUnit: o.defaultUnit,
				AllowPrivilegedSetNode: o.privileged, Now: time.Now, Metrics: metrics.sites,
			})
		},
	}}
}

// givenNamespaces warns, once at the start, of namespaces of --namespaces that do not exist. It is
// no error: they may be made later.
type givenNamespaces struct {
	live  client.Reader
	names []string
	log   *slog.Logger
}

// Start warns of namespaces that do not exist, and returns nil. The account need not have the
// right to read Namespaces: then it cannot list Grids in one, since its RoleBinding is in it.
func (g givenNamespaces) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	for _, name := range g.names {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		err := g.live.Get(ctx, types.NamespacedName{Name: name}, namespace)
		if apierrors.IsForbidden(err) {
			grids := &metav1.PartialObjectMetadataList{}
			grids.SetGroupVersionKind(v1.GroupVersion().WithKind("DeploymentGridList"))
			err = g.live.List(ctx, grids, client.InNamespace(name), client.Limit(1))
		}
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			g.log.Warn("a namespace of --namespaces does not exist, or the account has no rights in it: correct the name, or create it with its RoleBinding",
				"namespace", name, "err", err)
		}
	}
	return nil
}

// bridgeLogs sends what client-go and controller-runtime log into log. Both are global to the
// process: only run calls this, once.
func bridgeLogs(log *slog.Logger, verbosity int) error {
	ctrllog.SetLogger(logr.FromSlogHandler(log.Handler()))
	return klogbridge.Install(log, verbosity)
}
