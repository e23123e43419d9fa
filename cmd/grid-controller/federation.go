package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/agent"
	"gridproxy/controller/federation/hub"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// The values of --federation.
const (
	federationOff    = "off"
	federationHub    = "hub"
	federationMember = "member"
)

// federation adds what --federation asks for to a manager.
type federation struct {
	options   options
	config    *rest.Config
	namespace string // of grid-controller
	metrics   *hub.Metrics
	log       *slog.Logger
}

// add adds to m what --federation asks for, except the starter of the agents or the hub. It
// returns that one for the caller to add; nil with --federation=off, which has none. It opens
// the socket at which Flux fetches archives.
func (f federation) add(m manager.Manager) (*starter, error) {
	if f.options.federation != federationHub {
		if err := m.Add(leftovers{live: m.GetAPIReader(), namespaces: f.options.namespaces, log: f.log}); err != nil {
			return nil, fmt.Errorf("preparing to look for what a hub has left: %w", err)
		}
	}
	if f.options.federation == federationOff {
		return nil, nil //nolint:nilnil // nothing waits
	}
	listener, err := net.Listen("tcp", f.options.artifacts.orNone())
	if err != nil {
		return nil, fmt.Errorf("listening for Flux, which fetches archives: %w; choose another --artifact-bind-address", err)
	}
	reader, err := f.ownReader(m)
	if err != nil {
		return nil, err
	}
	if err := m.Add(&agent.Server{Listener: listener, Reader: reader, Log: f.log}); err != nil {
		return nil, fmt.Errorf("preparing the server of archives: %w", err)
	}
	begin := f.addPull
	resources := []string{"gridbundles"}
	if f.options.federation == federationHub {
		begin, resources = f.addHub, []string{"fleetclusters", "gridbundles", "gridreports"}
	}
	return &starter{
		what: "FleetClusters", check: "fleet", own: true, group: v1alpha1.GroupVersion(), resources: resources,
		add: func(context.Context) error { return begin(m) },
	}, nil
}

// ownReader returns a reader of the API server with a rate limit of its own: requests for
// archives must not slow down the controllers.
func (f federation) ownReader(m manager.Manager) (client.Reader, error) {
	config := rest.CopyConfig(f.config)
	config.RateLimiter, config.QPS, config.Burst = nil, agent.ReadsASecond, agent.ReadsBurst
	c, err := client.New(config, client.Options{Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(), HTTPClient: m.GetHTTPClient()})
	if err != nil {
		return nil, fmt.Errorf("preparing the server of archives: %w", err)
	}
	return c, nil
}

// addPull adds the agent of this cluster.
func (f federation) addPull(m manager.Manager) error {
	return m.Add(&agent.Pull{
		Config: f.config, Target: f.access(m), Namespace: f.namespace, ArtifactURL: f.artifactURL(),
		Version: command.ThisBuild().Version, Accept: f.options.accept, Now: time.Now, Log: f.log,
	})
}

// addHub adds the hub, and the agents of the clusters that it reaches.
func (f federation) addHub(m manager.Manager) error {
	push := agent.NewPush(agent.PushConfig{
		Config: f.config, Hub: f.access(m), HubUID: remembered(m), ArtifactURL: f.artifactURL(),
		Version: command.ThisBuild().Version, Now: time.Now, Log: f.log,
	})
	if err := hub.Add(m, hub.Config{
		Now: time.Now, Grace: time.Duration(f.options.grace), Budget: f.options.budget, Metrics: f.metrics, Detached: push.Detached,
	}); err != nil {
		return err
	}
	return m.Add(push)
}

func (f federation) access(m manager.Manager) agent.Access {
	return agent.Access{Cache: m.GetCache(), Client: m.GetClient(), Live: m.GetAPIReader()}
}

// artifactURL returns the URL at which Flux reaches the server of archives.
func (f federation) artifactURL() string {
	if f.options.artifactURL != "" {
		return strings.TrimSuffix(f.options.artifactURL, "/")
	}
	return "http://grid-artifacts." + f.namespace + ".svc.cluster.local."
}

// remembered returns a function that returns the UID of this cluster. It reads the UID until
// that succeeds once.
func remembered(m manager.Manager) func(context.Context) (string, error) {
	var lock sync.Mutex
	uid := ""
	return func(ctx context.Context) (string, error) {
		lock.Lock()
		defer lock.Unlock()
		if uid != "" {
			return uid, nil
		}
		found, err := agent.ClusterUID(ctx, m.GetAPIReader())
		if err == nil {
			uid = found
		}
		return found, err
	}
}

func (o *options) checkFederation() error {
	if o.federation == federationOff {
		return nil
	}
	var errs []error
	if len(o.namespaces) > 0 {
		errs = append(errs, errors.New("--federation needs all namespaces: Grids of other clusters may be in any, so leave out --namespaces"))
	}
	if o.artifacts == "" {
		errs = append(errs, errors.New("--artifact-bind-address is empty: Flux needs an address where it fetches archives, for example 0.0.0.0:9790"))
	}
	return errors.Join(errs...)
}

// isArtifactURL reports whether text is a URL with http or https and a host, as Flux needs.
func isArtifactURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
