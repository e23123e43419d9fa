package fleet

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"time"

	"gridproxy/cmd/table"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/grid/expand"
	"gridproxy/topology/excerpt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Cluster is one cluster to which Grids are distributed.
type Cluster struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Units int32  `json:"units"`
	Nodes int32  `json:"nodes"`
	// HeardAt is when it was last heard; nil: never.
	HeardAt *time.Time `json:"heardAt,omitempty"`
	Silent  bool       `json:"silent"`
	Grids   string     `json:"grids"` // how many of its Grids are what the hub has
}

// Hub is what a hub knows of all of them.
type Hub struct {
	Clusters []Cluster `json:"clusters"` // sorted by name

	now time.Time
}

// NewHub returns what a hub knows of its clusters at the time now. It reads the Leases that
// members renew, and ignores all others.
func NewHub(clusters []*v1alpha1.FleetCluster, leases []*coordinationv1.Lease, now time.Time) Hub {
	renewed := map[string]time.Time{}
	for _, l := range leases {
		if l.Name == v1alpha1.HeartbeatLease && l.Spec.RenewTime != nil {
			renewed[l.Namespace] = l.Spec.RenewTime.Time
		}
	}
	all := Hub{Clusters: []Cluster{}, now: now}
	for _, c := range clusters {
		row := Cluster{
			Name: c.Name, State: cmp.Or(excerpt.Of(c.Status.State), expand.StateWaiting), Units: c.Status.Units, Nodes: c.Status.Nodes,
			Grids: excerpt.Of(c.Status.GridSummary),
		}
		if since := c.Status.SilentSince; since != nil {
			row.Silent, row.HeardAt = true, &since.Time
		} else if at, found := renewed[v1alpha1.NamespacePrefix+c.Name]; found {
			row.HeardAt = &at
		}
		all.Clusters = append(all.Clusters, row)
	}
	slices.SortFunc(all.Clusters, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// WriteTable writes the clusters for people.
func (h Hub) WriteTable(w io.Writer) error {
	t := table.Table{Columns: []string{"CLUSTER", "STATE", "UNITS", "NODES", "HEARD", "GRIDS"}}
	for _, row := range h.Clusters {
		heard := "never"
		if row.HeardAt != nil { // a member's clock may be ahead of this one
			heard = duration.HumanDuration(max(h.now.Sub(*row.HeardAt), 0)) + " ago"
		}
		t.Add(row.Name, row.State, strconv.Itoa(int(row.Units)), strconv.Itoa(int(row.Nodes)), heard, row.Grids)
	}
	return t.Write(w)
}
