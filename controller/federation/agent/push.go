package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/agent/delivery"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PushConfig is what a Push works with.
type PushConfig struct {
	// Config is of this cluster's API server, the hub's, where Flux runs too.
	Config *rest.Config
	// Hub has the FleetClusters.
	Hub         Access
	HubUID      func(context.Context) (string, error)
	ArtifactURL string
	Version     string
	Now         func() time.Time
	Log         *slog.Logger
}

// Push runs an agent for each FleetCluster with a kubeconfig.
type Push struct {
	PushConfig

	changed chan struct{}
	// The maps are by the UIDs of FleetClusters: one that is made again under its name is another.
	running  map[types.UID]*pushed
	secrets  map[types.UID]secretRead
	tried    time.Time     // when the agent of a cluster that has sent too much was last started again
	places   chan struct{} // of those that Flux is letting go of
	mu       sync.Mutex
	detached map[types.UID]bool // that Flux has dropped
}

// NewPush returns a Push that is ready to start.
func NewPush(c PushConfig) *Push {
	return &Push{
		PushConfig: c, changed: make(chan struct{}, 1), places: make(chan struct{}, detachingMax),
		running: map[types.UID]*pushed{}, secrets: map[types.UID]secretRead{}, detached: map[types.UID]bool{},
	}
}

// NeedLeaderElection returns true: one agent works for a cluster.
func (p *Push) NeedLeaderElection() bool { return true }

// Detached reports whether nothing of Flux is left for a FleetCluster, so that its deletion leaves
// the Grids where they are.
func (p *Push) Detached(cluster types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.detached[cluster]
}

// note keeps what Detached returns for a FleetCluster.
func (p *Push) note(cluster types.UID, detached bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if detached {
		p.detached[cluster] = true
	} else {
		delete(p.detached, cluster)
	}
}

// Start runs the agents until ctx ends. It logs errors, tries again, and returns nil.
func (p *Push) Start(ctx context.Context) error {
	fleet := &watch{cache: p.Hub.Cache, object: &v1alpha1.FleetCluster{}, on: wishes(wake(p.changed)), now: p.Now}
	said := ""
	for ctx.Err() == nil {
		synced, err := fleet.synced(ctx)
		if synced {
			err = p.round(ctx)
		}
		if err != nil && err.Error() != said {
			said = err.Error()
			p.Log.Warn("not every cluster with a kubeconfig is served; it is tried again", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-p.changed:
			p.settle(ctx)
		case <-time.After(secretPeriod):
		}
	}
	p.end(slices.Collect(maps.Values(p.running))...)
	return nil
}

// settle waits pushSettleDelay, or until ctx ends, so that close changes start one round.
func (p *Push) settle(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(pushSettleDelay):
	}
	select {
	case <-p.changed:
	default:
	}
}

// wishes returns a handler that passes on all but updates without a new generation or deletion.
func wishes(next toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { next.OnAdd(o, false) }, DeleteFunc: next.OnDelete,
		UpdateFunc: func(old, new any) {
			before, isObject := old.(client.Object)
			after, alsoObject := new.(client.Object)
			if isObject && alsoObject && before.GetUID() == after.GetUID() && before.GetGeneration() == after.GetGeneration() &&
				(before.GetDeletionTimestamp() == nil) == (after.GetDeletionTimestamp() == nil) {
				return
			}
			next.OnUpdate(old, new)
		},
	}
}

// round starts, restarts and ends agents, and has Flux drop clusters, despite single errors.
func (p *Push) round(ctx context.Context) error {
	hub, err := p.HubUID(ctx)
	if err != nil {
		return err
	}
	var list v1alpha1.FleetClusterList
	if err := p.Hub.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("reading FleetClusters: %w", err)
	}
	p.forget(list.Items)
	var errs []error
	for i := range list.Items {
		c := &list.Items[i]
		switch {
		case c.Spec.KubeConfig == nil || c.Spec.Pull:
			p.end(p.running[c.UID])
			p.note(c.UID, true) // Flux has nothing of it here
		case c.DeletionTimestamp != nil && c.Spec.OnDelete != v1alpha1.Remove:
			p.letGo(ctx, c)
		default:
			p.note(c.UID, false)
			errs = append(errs, p.serve(ctx, hub, c))
		}
	}
	return errors.Join(errs...)
}

// forget ends the agents of FleetClusters that are not there, and drops what it knows of them.
func (p *Push) forget(there []v1alpha1.FleetCluster) {
	is := map[types.UID]bool{}
	for i := range there {
		is[there[i].UID] = true
	}
	var gone []*pushed
	for uid, a := range p.running {
		if !is[uid] {
			gone = append(gone, a)
		}
	}
	p.end(gone...)
	maps.DeleteFunc(p.secrets, func(uid types.UID, _ secretRead) bool { return !is[uid] })
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.detached, func(uid types.UID, _ bool) bool { return !is[uid] })
}

// serve starts the agent of one cluster, or another if its kubeconfig has changed, and ends it
// if that is unusable; the Lease says why. One that has sent too much may have to wait.
func (p *Push) serve(ctx context.Context, hub string, c *v1alpha1.FleetCluster) error {
	running := p.running[c.UID]
	read, fresh := p.kubeConfig(ctx, c)
	err := read.err
	if running != nil && running.excess.Load() != nil && err == nil && running.kubeConfig == read.text {
		if wait, err := p.excessive(ctx, running); wait || err != nil {
			return err
		}
		running.kubeConfig = "" // it is tried again
	}
	if err == nil && running != nil && running.kubeConfig == read.text && running.ref == *c.Spec.KubeConfig {
		return nil
	}
	var config *rest.Config
	if err == nil {
		config, err = parse(read.text)
	}
	if err != nil && running != nil && unusable(err) { // it would say that all is well, and Flux has the same kubeconfig
		p.end(running)
	}
	if err != nil && fresh {
		message := fmt.Sprintf("give another kubeconfig: grid-controller join --cluster %s --member-kubeconfig FILE: %s", c.Name, excerpt.Message(err.Error()))
		return errors.Join(err, p.tell(ctx, c.Name, delivery.ReasonKubeConfig, message))
	}
	if err != nil {
		return err
	}
	p.end(running)
	config.UserAgent = "grid-controller/" + p.Version + " hub"
	config.QPS, config.Burst = requestsASecond, requestsBurst
	if err := p.start(ctx, hub, c, config, read.text); err != nil {
		return fmt.Errorf("starting the agent of FleetCluster %s: %w", c.Name, err)
	}
	return nil
}

// excessive reports whether a cluster that has sent too much, which it reports once, is to wait
// before its agent starts again: one in excessDelay, so that they do not fill the memory.
func (p *Push) excessive(ctx context.Context, a *pushed) (wait bool, err error) {
	if a.reported.IsZero() {
		why := *a.excess.Load()
		p.Log.Warn("a cluster sends too much; its agent is ended, and started again later", "cluster", a.name, "why", why)
		message := fmt.Sprintf("the cluster sends more than grid-controller keeps of one: %s; see what writes Grids there; it is tried again every %s",
			why, excessDelay)
		if err := p.tell(ctx, a.name, delivery.ReasonTooLarge, message); err != nil {
			return true, err
		}
		a.reported = p.Now()
	}
	if now := p.Now(); min(now.Sub(p.tried).Abs(), now.Sub(a.reported).Abs()) < excessDelay {
		return true, nil
	}
	p.tried = p.Now()
	return false, nil
}

// secretRead is the kubeconfig of a FleetCluster as it was read, or why it could not be.
type secretRead struct {
	at         time.Time
	generation int64 // of the FleetCluster
	text       string
	err        error
}

// kubeConfig reads the Secret of a FleetCluster, but no more often than each 30 s if the
// FleetCluster is the same. An error is in read.err. fresh reports whether it was read now.
func (p *Push) kubeConfig(ctx context.Context, c *v1alpha1.FleetCluster) (read secretRead, fresh bool) {
	now := p.Now()
	if known, found := p.secrets[c.UID]; found && known.generation == c.Generation && now.Sub(known.at).Abs() < secretPeriod {
		return known, false
	}
	read = secretRead{at: now, generation: c.Generation}
	read.text, read.err = p.readSecret(ctx, c)
	p.secrets[c.UID] = read
	return read, true
}

func (p *Push) readSecret(ctx context.Context, c *v1alpha1.FleetCluster) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ref := c.Spec.KubeConfig.SecretRef
	key := types.NamespacedName{Namespace: v1alpha1.NamespacePrefix + c.Name, Name: ref.Name}
	var secret corev1.Secret
	if err := p.Hub.Live.Get(ctx, key, &secret); apierrors.IsForbidden(err) && ref.Name != v1alpha1.KubeConfigSecret {
		return "", fmt.Errorf("reading the kubeconfig of FleetCluster %s: %w: grid-controller may read no Secret but %s there: "+
			"set spec.kubeConfig.secretRef.name to it, or give the account the right to get Secret %s", c.Name, err, v1alpha1.KubeConfigSecret, key)
	} else if err != nil {
		return "", fmt.Errorf("reading the kubeconfig of FleetCluster %s: %w", c.Name, err)
	}
	names := []string{ref.Key}
	if ref.Key == "" {
		names = []string{"value", "value.yaml"} // as Flux does
	}
	for _, name := range names {
		if text := secret.Data[name]; len(text) > 0 {
			return string(text), nil
		}
	}
	return "", fmt.Errorf("reading the kubeconfig of FleetCluster %s: %w: Secret %s has no key %s", c.Name, errKubeConfig, key, names[0])
}

// unusable reports whether the kubeconfig is missing or wrong, and not only unread this time.
func unusable(err error) bool { return apierrors.IsNotFound(err) || errors.Is(err, errKubeConfig) }

var errKubeConfig = errors.New("it cannot be used")

// parse reads a kubeconfig. It returns an error that wraps errKubeConfig if it is malformed,
// names a program, a file or a proxy, or if its server has no https://.
func parse(text string) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("reading a kubeconfig: %w: %w", errKubeConfig, err)
	}
	tls := config.TLSClientConfig
	if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" || tls.CertFile != "" || tls.KeyFile != "" || tls.CAFile != "" {
		return nil, fmt.Errorf("reading a kubeconfig: %w: it names a program or a file; embed the credentials, as kubectl config view --raw --flatten does",
			errKubeConfig)
	}
	if !strings.HasPrefix(config.Host, "https://") || config.Proxy != nil {
		return nil, fmt.Errorf("reading a kubeconfig: %w: its server has no https://, or it has proxy-url: give the server itself, with https://", errKubeConfig)
	}
	return config, nil
}
