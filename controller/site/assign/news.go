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
			all = append(all, News{Reason: reasonOf(now), Note: now.Message})
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

// reasonOf returns what an Event calls a condition. DeletionHeld is the same word for groups as
// for Grids.
func reasonOf(c metav1.Condition) string {
	if c.Type == v1alpha2.ConditionDeletionHeld {
		return c.Type
	}
	return c.Reason
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
