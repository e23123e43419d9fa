package expand

import (
	"fmt"
	"time"

	v1 "gridproxy/controller/api/v1"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IdleCondition returns the condition to add to the status of a Grid that represents another
// cluster; nil if there is nothing to add. The other fields of that status belong to the other
// cluster, so an absent condition is added only when the Grid changes.
func IdleCondition(g Grid, has []metav1.Condition, now time.Time) *metav1.Condition {
	if !g.Distributed || g.Deleting || meta.IsStatusConditionTrue(has, v1.ConditionIdle) {
		return nil
	}
	return &metav1.Condition{
		Type: v1.ConditionIdle, Status: metav1.ConditionTrue, Reason: "Distributed", ObservedGeneration: g.Generation,
		LastTransitionTime: metav1.Time{Time: now.UTC().Truncate(time.Second)},
		Message: fmt.Sprintf("the label %s says that another cluster expands this Grid, so it has no children here; "+
			"to have them here, remove the label", v1.LabelDistributed),
	}
}
