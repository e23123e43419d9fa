package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/agent/delivery"
	"gridproxy/topology/excerpt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pushed is what works for one cluster: its agent, or what makes Flux drop it.
type pushed struct {
	uid  types.UID // of the FleetCluster
	name string
	// kubeConfig and ref are what the agent reaches the cluster with; "": it is being dropped.
	kubeConfig string
	ref        v1alpha1.KubeConfig
	stop       context.CancelFunc
	ended      chan struct{}
	// excess is why the agent was ended, if its cluster has sent too much, and reported is when that
	// was reported.
	excess   atomic.Pointer[string]
	reported time.Time
}

func (a *pushed) hasEnded() bool {
	select {
	case <-a.ended:
		return true
	default:
		return false
	}
}

// launch enters a into p.running, and runs work in a goroutine, which then closes a.ended.
func (p *Push) launch(ctx context.Context, a *pushed, work func(context.Context)) {
	p.running[a.uid] = a
	go func() {
		defer close(a.ended)
		work(ctx)
	}()
}

// end ends agents, of which some may be nil, removes them from p.running, and waits at most
// endTimeout. One that still waits for an API server is left behind: it can write nothing any
// more.
func (p *Push) end(all ...*pushed) {
	all = slices.DeleteFunc(all, func(a *pushed) bool { return a == nil })
	for _, a := range all {
		a.stop()
	}
	late := make(chan struct{})
	timer := time.AfterFunc(endTimeout, func() { close(late) })
	defer timer.Stop()
	for _, a := range all {
		delete(p.running, a.uid)
		select {
		case <-a.ended:
		case <-late:
		}
		if !a.hasEnded() {
			p.Log.Warn("the earlier agent of a cluster waits for an answer; it is left behind", "cluster", a.name)
		}
	}
}

func (p *Push) start(ctx context.Context, hub string, c *v1alpha1.FleetCluster, config *rest.Config, kubeConfig string) error {
	ctx, stop := context.WithCancel(ctx)
	started := &pushed{uid: c.UID, name: c.Name, stop: stop, ended: make(chan struct{}), kubeConfig: kubeConfig, ref: *c.Spec.KubeConfig}
	limit := &bound{now: p.Now, exceeded: func(why string) {
		started.excess.Store(&why)
		stop()
		wake(p.changed).OnAdd(nil, false)
	}}
	config.Wrap(limit.wrap)
	// Options by kind would ask the cluster for its kinds before it is known whether it answers.
	target, err := newAccess(ctx, config, cache.Options{DefaultTransform: slimGrids(hub)})
	var here Access
	if err == nil {
		here, err = p.access(ctx, c.Name)
	}
	if err != nil {
		stop()
		return err
	}
	a := New(Config{
		Cluster: c.Name, Hub: hub, HubAccess: here, Target: target, Engine: here, Namespace: v1alpha1.NamespacePrefix + c.Name,
		KubeConfig: c.Spec.KubeConfig, ArtifactURL: p.ArtifactURL, Version: p.Version, bound: limit, Now: p.Now, Log: p.Log,
	})
	p.launch(ctx, started, a.Run)
	return nil
}

// access returns access to this cluster, the hub. Its cache, which ends with ctx, has only the
// FleetCluster of that name and what is in its namespace.
func (p *Push) access(ctx context.Context, name string) (Access, error) {
	return newAccess(ctx, p.Config, cache.Options{
		DefaultNamespaces: map[string]cache.Config{v1alpha1.NamespacePrefix + name: {}},
		ByObject:          map[client.Object]cache.ByObject{&v1alpha1.FleetCluster{}: {Field: fields.OneTermEqualSelector("metadata.name", name)}},
	})
}

// tell writes into a cluster's Lease why it has no agent, without renewing the Lease.
func (p *Push) tell(ctx context.Context, name, reason, message string) error {
	a := New(Config{Cluster: name, HubAccess: p.Hub, Now: p.Now, Log: p.Log})
	text, err := json.Marshal(v1alpha1.Heartbeat{Problems: []v1alpha1.Problem{{Reason: reason, Message: excerpt.Fit(message, v1alpha1.MaxMessage)}}})
	if err != nil {
		return fmt.Errorf("encoding the heartbeat: %w", err)
	}
	return a.renew(ctx, string(text), "", false)
}

// letGo ends the agent of a cluster that is being deleted, and begins to make Flux drop it,
// unless that is under way or done. A failure is only logged.
func (p *Push) letGo(ctx context.Context, c *v1alpha1.FleetCluster) {
	running := p.running[c.UID]
	if p.Detached(c.UID) || running != nil && running.kubeConfig == "" && !running.hasEnded() {
		return
	}
	p.end(running)
	ctx, stop := context.WithCancel(ctx)
	p.launch(ctx, &pushed{uid: c.UID, name: c.Name, stop: stop, ended: make(chan struct{})}, func(ctx context.Context) {
		defer stop()
		select {
		case <-ctx.Done():
			return
		case p.places <- struct{}{}:
		}
		defer func() { <-p.places }()
		if err := p.detach(ctx, c); err != nil && ctx.Err() == nil {
			p.Log.Warn("Flux has not let go of a cluster; it is tried again", "cluster", c.Name, "err", err)
		}
	})
}

// detach makes Flux drop a cluster and leave its Grids, and waits, at most detachTimeout, until
// nothing of Flux is left. It notes that for Detached, or returns an error.
func (p *Push) detach(ctx context.Context, c *v1alpha1.FleetCluster) error {
	ctx, cancel := context.WithTimeout(ctx, detachTimeout)
	defer cancel()
	_, err := readNamespace(ctx, p.Hub.Live, v1alpha1.NamespacePrefix+c.Name)
	if apierrors.IsNotFound(err) { // all of it went with its namespace, as did the rights to look
		p.note(c.UID, true)
		return nil
	}
	here, err := p.access(ctx, c.Name)
	if err != nil {
		return err
	}
	a := New(Config{Cluster: c.Name, Engine: here, HubAccess: here, Target: here, Namespace: v1alpha1.NamespacePrefix + c.Name, Now: p.Now, Log: p.Log})
	for {
		var observed delivery.Observed
		if err := a.observeEngine(ctx, &observed); err != nil {
			return err
		}
		if len(observed.Copies) == 0 && (a.usable || observed.EngineMissing != "") && observed.Copies != nil {
			p.note(c.UID, true)
			return nil
		}
		for set := range observed.Copies {
			if err := a.removeSet(ctx, set, policyOrphan); err != nil {
				return err
			}
		}
		if !a.wait(ctx, time.Second) {
			return fmt.Errorf("waiting until Flux lets go of FleetCluster %s: %w; it is tried again; see whether kustomize-controller runs", c.Name, ctx.Err())
		}
	}
}
