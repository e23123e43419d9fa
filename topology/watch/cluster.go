package watch

import (
	"context"
	"errors"
	"log/slog"

	"gridproxy/topology"

	"k8s.io/client-go/rest"
)

// ClusterConfig says which API server to watch, and for whom.
type ClusterConfig struct {
	Rest *rest.Config // address, credentials, QPS and user agent; not changed
	Node string       // this node's name
	Log  *slog.Logger // told once of each outage of the API server and of its end; nil = nobody
}

// Cluster is the Source that watches an API server.
type Cluster struct {
	config ClusterConfig
}

// NewCluster makes the Source; nothing is asked of the API server before Run.
func NewCluster(c ClusterConfig) (*Cluster, error) { return &Cluster{config: c}, nil }

// Run watches until ctx ends; it then returns nil.
func (c *Cluster) Run(ctx context.Context) error { return errors.ErrUnsupported }

// Snapshot is the state of the cluster as last heard.
func (c *Cluster) Snapshot() (topology.Snapshot, bool) { return topology.Snapshot{}, false }

// Changed receives after something that a Snapshot holds has changed.
func (c *Cluster) Changed() <-chan struct{} { return nil }
