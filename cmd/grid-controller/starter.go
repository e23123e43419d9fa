package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gridproxy/cmd/grid-controller/migrate"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// starter starts controllers once the API server serves their resources.
type starter struct {
	what      string // what these are, for people
	check     string // the name of its check in /readyz
	group     schema.GroupVersion
	resources []string
	own       bool // SuperEdge has no such kinds, so their definitions are no others
	add       func(context.Context) error
	after     *starter // whose resources must be served too; nil: none

	api         discovery.DiscoveryInterface
	definitions migrate.Check
	log         *slog.Logger
	begun       atomic.Bool
}

// NeedLeaderElection returns false, so that the caches of standby replicas are filled too.
func (s *starter) NeedLeaderElection() bool { return false }

// Start adds the controllers once the CRDs exist and are ours. It waits for that without a
// limit, and returns nil if ctx ends before.
func (s *starter) Start(ctx context.Context) error {
	if !s.wait(ctx) {
		return nil
	}
	if err := s.add(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	s.begun.Store(true)
	return nil
}

// wait waits until the controllers can start, and reports false if ctx ends before. It logs the
// reason when that changes and from time to time.
func (s *starter) wait(ctx context.Context) bool {
	tick := time.NewTicker(definitionsPeriod)
	defer tick.Stop()
	said, at := "", time.Time{}
	for {
		err := s.obstacle(ctx)
		if err == nil {
			if said != "" {
				s.log.Info("the API server serves the resources now", "of", s.what)
			}
			return true
		}
		if now := time.Now(); err.Error() != said || now.Sub(at) >= definitionsLogPeriod {
			s.log.Warn("waiting", "err", err)
			said, at = err.Error(), now
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// obstacle returns why the controllers cannot start yet; nil if they can. If the definitions
// cannot be read for lack of rights, they are assumed to be ours.
func (s *starter) obstacle(ctx context.Context) error {
	if s.after != nil {
		if err := s.after.obstacle(ctx); err != nil {
			return fmt.Errorf("the controllers of %s wait for those of %s: %w", s.what, s.after.what, err)
		}
	}
	var unfit error
	if !s.own {
		unfit = s.definitions.Unfit(ctx, s.group.Group, s.resources)
	}
	if unfit != nil && !apierrors.IsForbidden(unfit) {
		return unfit // before what is missing: SuperEdge's may be without a version of ours
	}
	if err := s.missing(); err != nil {
		return err
	}
	if unfit != nil {
		s.log.Warn("not known whether the CustomResourceDefinitions are SuperEdge's; the ClusterRole in "+
			"deploy/grid-controller.yaml allows to see that", "err", unfit)
	}
	return nil
}

// missing returns an error that names the resources that the API server does not serve; nil if
// it serves all.
func (s *starter) missing() error {
	list, err := s.api.ServerResourcesForGroupVersion(s.group.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("asking the API server for the resources of %s: %w", s.what, err)
	}
	absent := slices.Clone(s.resources)
	if err == nil {
		for _, r := range list.APIResources {
			absent = slices.DeleteFunc(absent, func(name string) bool { return name == r.Name })
		}
	}
	if len(absent) == 0 {
		return nil
	}
	return fmt.Errorf("the API server does not serve all resources of %s: %s of %s are missing; install them with: kubectl apply --server-side -f deploy/crds",
		s.what, strings.Join(absent, ", "), s.group)
}

// ready answers /readyz: it returns an error until the controllers have started.
func (s *starter) ready(*http.Request) error {
	if !s.begun.Load() {
		return fmt.Errorf("the controllers of %s have not started: see the log", s.what)
	}
	return nil
}
