package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"gridproxy/controller/api/v1alpha1"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pull runs the agent of this cluster, which reaches the hub as the Secret of grid-controller join
// says. Without the Secret it waits.
type Pull struct {
	// Config is of this cluster's API server.
	Config *rest.Config
	// Target has the Grids of this cluster.
	Target      Access
	Namespace   string // of grid-controller
	ArtifactURL string
	Version     string
	Accept      []string // namespaces into which Grids of the hub may be put; none: all
	Now         func() time.Time
	Log         *slog.Logger

	again *rate.Limiter // of watches that begin again
}

// NeedLeaderElection returns true: one agent works for a cluster.
func (p *Pull) NeedLeaderElection() bool { return true }

// Start runs the agent, if there is a Secret, until ctx ends. It logs errors and returns nil.
func (p *Pull) Start(ctx context.Context) error {
	said := ""
	for ctx.Err() == nil {
		joined, err := p.read(ctx)
		if err == nil {
			said = ""
			err = p.follow(ctx, joined)
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			p.Log.Warn("not connected to a hub", "err", err)
		}
		if err == nil {
			continue // the Secret is about another hub, or the watches of the hub begin again
		}
		select {
		case <-ctx.Done():
		case <-time.After(secretPeriod):
		}
	}
	return nil
}

// joined is the content of the Secret.
type joined struct {
	server, cluster, hub, token string
	ca                          []byte
	version                     string // of the Secret
}

// same reports whether only the token differs, so that the agent of one Secret can go on.
func (j joined) same(other joined) bool {
	return j.server == other.server && j.cluster == other.cluster && j.hub == other.hub && string(j.ca) == string(other.ca)
}

var errIncomplete = errors.New("it is incomplete")

func (p *Pull) read(ctx context.Context) (joined, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: p.Namespace, Name: v1alpha1.HubSecret}
	err := p.Target.Live.Get(ctx, key, &secret)
	if apierrors.IsNotFound(err) {
		return joined{}, fmt.Errorf("there is no Secret %s: run grid-controller join on the hub, and apply here what it prints: %w", key, err)
	}
	if err != nil {
		return joined{}, fmt.Errorf("reading the Secret %s: %w", key, err)
	}
	field := func(name string) string { return strings.TrimSpace(string(secret.Data[name])) }
	j := joined{
		server: field("server"), cluster: field("cluster"), hub: field("hub"), token: field("token"), ca: secret.Data["ca.crt"], version: secret.ResourceVersion,
	}
	if j.server == "" || j.cluster == "" || j.hub == "" || j.token == "" {
		return joined{}, fmt.Errorf("reading the Secret %s: %w: it needs server, cluster, hub and token; run grid-controller join on the hub again",
			key, errIncomplete)
	}
	return j, nil
}

// follow runs the agent until the Secret is about another hub or cluster, or the watches of the
// hub begin again. It returns an error if the Secret is gone or incomplete.
func (p *Pull) follow(ctx context.Context, j joined) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	token := &bearer{}
	token.use(j.token)
	config := &rest.Config{
		Host: j.server, TLSClientConfig: rest.TLSClientConfig{CAData: j.ca}, UserAgent: "grid-controller/" + p.Version + " member",
		QPS: requestsASecond, Burst: requestsBurst,
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return authorized{bearer: token, next: next} })
	hub, err := hubAccess(ctx, config, j.cluster)
	if err != nil {
		return fmt.Errorf("preparing to reach the hub at %s: %w", j.server, err)
	}
	engine, err := newAccess(ctx, p.Config, cache.Options{DefaultNamespaces: map[string]cache.Config{p.Namespace: {}}})
	if err != nil {
		return fmt.Errorf("preparing to reach Flux: %w", err)
	}
	a := New(Config{
		Cluster: j.cluster, Hub: j.hub, HubAccess: hub, Target: p.Target, Engine: engine,
		Namespace: p.Namespace, ArtifactURL: p.ArtifactURL, Version: p.Version, Accept: p.Accept, Now: p.Now, Log: p.Log,
		HubRestored: func() bool { return p.beginAgain(stop) },
	})
	p.Log.Info("following the hub", "server", j.server, "cluster", j.cluster)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.Run(ctx)
	}()
	defer func() { <-ended }()
	defer stop()
	return p.watchSecret(ctx, hub.Client, token, j)
}

// beginAgain ends an agent so that another one begins to watch the hub. A watch goes on at
// versions that a hub which was restored from a backup does not have yet, and misses events
// until then. It reports false if that was done several times lately, and is done later.
func (p *Pull) beginAgain(stop context.CancelFunc) bool {
	if p.again == nil {
		p.again = rate.NewLimiter(rate.Every(rewatchPeriod), rewatchBurst)
	}
	if !p.again.AllowN(p.Now(), 1) {
		return false
	}
	p.Log.Warn("the hub has lost what was written to it: it was restored from a backup, or another cluster has joined under the same name; " +
		"its watches begin again")
	stop()
	return true
}

// watchSecret keeps the token fresh until ctx ends or the Secret is about another hub: then it
// returns nil. It returns an error if the Secret is gone or incomplete.
func (p *Pull) watchSecret(ctx context.Context, hub client.Client, token *bearer, j joined) error {
	tried, said := time.Time{}, ""
	for now := j; ; {
		if validityOf(*token.token.Load()).due(p.Now(), tried) {
			tried = p.Now()
			if err := p.renew(ctx, hub, token, now); err != nil {
				p.Log.Warn("the token for the hub is renewed later", "err", err)
			}
		}
		said = p.tellExpired(token, j, said)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(secretPeriod):
		}
		read, err := p.read(ctx)
		switch {
		case apierrors.IsNotFound(err), errors.Is(err, errIncomplete):
			return err
		case err != nil: // this cluster's API server is away
			continue
		case !read.same(j):
			return nil
		}
		if now = read; now.token != *token.token.Load() {
			token.use(now.token) // joined again
			tried = time.Time{}
		}
	}
}

// tellExpired logs once for each token that the hub does not accept it. It returns the token for
// which that was logged last.
func (p *Pull) tellExpired(token *bearer, j joined, said string) string {
	text := *token.token.Load()
	ends := validityOf(text)
	if text == said || !token.refused.Load() && !ends.expired(p.Now()) {
		return said
	}
	p.Log.Warn("TokenExpired: the token for the hub has expired, or the cluster was joined again elsewhere; everything stays as it is",
		"server", j.server, "expires", ends.until, "accepted", !token.refused.Load(),
		"remedy", "run grid-controller join --cluster "+j.cluster+" on the hub, and apply here what it prints")
	return text
}

// renew keeps a new token in the Secret, and uses it. If the Secret was written in between, it
// stays as it is, and renew returns an error.
func (p *Pull) renew(ctx context.Context, hub client.Client, token *bearer, j joined) error {
	fresh, expires, err := renewToken(ctx, hub, j.cluster)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata":   map[string]string{"resourceVersion": j.version},
		"stringData": map[string]string{"token": fresh, "expires": expires.UTC().Format(time.RFC3339)},
	})
	if err != nil {
		return fmt.Errorf("encoding the token: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = p.Namespace, v1alpha1.HubSecret
	if err := p.Target.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(Manager)); err != nil {
		return fmt.Errorf("keeping the renewed token for the hub: %w", err)
	}
	token.use(fresh)
	return nil
}

// hubAccess returns access to a hub that may be away: a member goes on, and Grids are repaired
// there, also if its controller starts meanwhile. So it does not ask the hub which kinds it has.
func hubAccess(ctx context.Context, config *rest.Config, cluster string) (Access, error) {
	home := v1alpha1.NamespacePrefix + cluster
	return newAccess(ctx, config, cache.Options{Mapper: hubKinds(), ByObject: map[client.Object]cache.ByObject{
		&v1alpha1.FleetCluster{}: {Field: fields.OneTermEqualSelector("metadata.name", cluster)},
		&v1alpha1.GridBundle{}:   {Namespaces: map[string]cache.Config{home: {}}},
	}})
}
