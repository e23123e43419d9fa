package fleet

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"gridproxy/cmd/table"

	v1 "gridproxy/controller/api/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Units are the rows of one Grid.
type Units struct {
	Grid    Grid            `json:"grid"`
	Units   []v1.UnitStatus `json:"units"` // in the order of the status
	Omitted int32           `json:"omittedUnits,omitempty"`

	distributed bool // there are other clusters
	reported    bool // they are those of one of these
}

// WriteTable writes the Units for people.
func (u Units) WriteTable(w io.Writer) error {
	t := table.Table{Columns: []string{"UNIT", "PHASE", "NODES", "READY", "UPDATED", "MISPLACED", "CHILD", "TEMPLATE", "REASON", "MESSAGE"}}
	number := func(n int32) string { return strconv.Itoa(int(n)) }
	for _, row := range u.Units {
		cells := []string{row.Value, string(row.Phase), number(row.Nodes), fmt.Sprintf("%d/%d", row.ReadyReplicas, row.Replicas),
			number(row.UpdatedReplicas), number(row.Misplaced), row.Child, row.Template, row.Reason, row.Message}
		if u.distributed {
			cells = slices.Insert(cells, 0, row.Cluster)
		}
		t.Add(cells...)
	}
	if u.distributed {
		t.Columns = slices.Insert(t.Columns, 0, "CLUSTER")
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if u.Omitted == 0 {
		return nil
	}
	remedy := ""
	if u.distributed && !u.reported {
		remedy = "; --cluster prints those of one cluster"
	}
	_, err := fmt.Fprintf(w, "%d more units have no row in the status%s.\n", u.Omitted, remedy)
	return err
}

// NewReportedUnits returns the rows of a Grid in one cluster, by its report.
func NewReportedUnits(cluster, kind string, object metav1.ObjectMeta, spec v1.WorkloadGridSpec, s v1.WorkloadGridStatus) Units {
	object.Generation = 0 // it is the hub's; the report is about the one there
	u := NewUnits(kind, object, spec, s)
	for i := range u.Units {
		u.Units[i].Cluster = cluster
	}
	u.distributed, u.reported = true, true
	return u
}

// NewUnits returns the rows of a Grid.
func NewUnits(kind string, object metav1.ObjectMeta, spec v1.WorkloadGridSpec, s v1.WorkloadGridStatus) Units {
	return Units{
		Grid: NewGrid(kind, object, spec.GridUniqKey, s), Units: slices.Concat([]v1.UnitStatus{}, s.Units), Omitted: s.OmittedUnits,
		distributed: s.ClusterRate != "",
	}
}
