package assign

import (
	"slices"

	"gridproxy/controller/api/site/v1alpha2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	kindUnit  = "NodeUnit"
	kindGroup = "NodeGroup"
)

// addedConditions returns News of the conditions that are new or have another reason. Because
// written statuses are compared, each is reported once, even if another controller takes over in
// between. A field that is stored and not implemented is not an incident, so only the condition
// reports it.
func addedConditions(before, after []metav1.Condition) []News {
	var all []News
	for _, now := range after {
		stood := slices.ContainsFunc(before, func(was metav1.Condition) bool {
			return was.Type == now.Type && was.Status == now.Status && was.Reason == now.Reason
		})
		if !stood && now.Type != v1alpha2.ConditionNotImplemented {
			reason := now.Reason
			if now.Type == v1alpha2.ConditionDeletionHeld { // the same word for groups as for Grids
				reason = now.Type
			}
			all = append(all, News{Reason: reason, Note: now.Message})
		}
	}
	return all
}

// leftBehind returns News of the labels that stay on Nodes when the object is gone, nil if none
// stay.
func (r *report) leftBehind() []News {
	if reason, message := r.say(v1alpha2.ConditionInUse); message != "" {
		return []News{{Reason: reason, Note: message}}
	}
	return nil
}

func (s *Summary) unit(u *unit, status v1alpha2.NodeUnitStatus) {
	s.Units = append(s.Units, UnitNodes{
		Unit: u.Name, Ready: len(status.ReadyNodes) + status.MoreReadyNodes, NotReady: len(status.NotReadyNodes) + status.MoreNotReadyNodes,
	})
	s.wrong(kindUnit, u.Name, status.Conditions)
}

func (s *Summary) wrong(kind, name string, conditions []metav1.Condition) {
	for _, c := range conditions {
		s.Wrong = append(s.Wrong, Wrong{Kind: kind, Name: name, Condition: c.Type})
	}
}
