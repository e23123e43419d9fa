package expand

import (
	"fmt"
	"strings"
	"time"

	v1 "gridproxy/controller/api/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// row returns a unit's row in the status. Its only times are those of events, so that a status
// changes only with the facts.
func (a *assessment) row(u *unit) v1.UnitStatus {
	row := v1.UnitStatus{
		Value: u.Value, Child: u.Name, Template: u.Template, Nodes: int32(u.nodes), Misplaced: int32(len(u.pods)),
	}
	if u.ownership == ours {
		row.Replicas, row.ReadyReplicas, row.UpdatedReplicas = u.live.StatusReplicas, u.live.ReadyReplicas, u.live.UpdatedReplicas
	}
	if u.unserved {
		row.Served = new(false)
	}
	switch {
	case u.loss != nil:
		row.Phase, row.Reason, row.Message = v1.UnitLost, ReasonUnitLost, a.lossMessage(u)
		if !u.loss.since.IsZero() {
			row.LostAt = &metav1.Time{Time: u.loss.since}
		}
	case a.paused(u) && !u.offline:
		row.Phase, row.Reason, row.Message = u.pausedPhase()
	case u.withheld:
		row.Phase, row.Reason, row.Message = v1.UnitFailed, ReasonTooManyUnits, u.withheldMessage()
	case u.problem() != nil:
		row.Phase, row.Reason, row.Message = v1.UnitFailed, u.problem().Reason, u.problem().Message
		row.Message += a.replacementRemark(u)
	case u.contested(a.Now):
		row.Phase, row.Reason, row.Message = v1.UnitFailed, ReasonContested, u.contestMessage()
	case u.offline:
		row.Phase, row.Reason, row.Message = v1.UnitOffline, ReasonNodesNotReady, u.offlineMessage()
		if a.paused(u) {
			row.Message += "; nothing is changed " + becausePaused
		}
	default:
		row.Phase, row.Reason, row.Message = u.phase()
	}
	if row.Message == "" && row.Misplaced > 0 {
		row.Message = a.misplacedMessage(u)
	}
	return row
}

// phase returns the phase of a unit with Nodes that has no problem of ours.
func (u *unit) phase() (phase v1.UnitPhase, reason, message string) {
	switch {
	case u.deleting():
		return v1.UnitProgressing, "Deleting", fmt.Sprintf("%s %s is being deleted, and is created again when it is gone", u.kind(), u.Name)
	case u.ownership != ours:
		return v1.UnitProgressing, "Creating", fmt.Sprintf("%s %s is not created yet", u.kind(), u.Name)
	case u.differs(): // after the steps of a plan: the apply has failed
		return v1.UnitProgressing, "Applying", fmt.Sprintf("%s %s does not have the last change yet; the controller retries, and its log says why "+
			"if this lasts", u.kind(), u.Name)
	case u.live.Stalled != "" && u.resumes.IsZero():
		return v1.UnitFailed, ReasonStalled, fmt.Sprintf("%s %s is stuck: %s", u.kind(), u.Name, u.live.Stalled)
	}
	if message := u.rollout(); message != "" {
		if u.live.Paused && u.template("paused") != true {
			return v1.UnitProgressing, ReasonChildPaused, fmt.Sprintf("%s, and %s %s is paused; to resume it: kubectl rollout resume -n %s %s/%s",
				message, u.kind(), u.Name, u.grid.Namespace, strings.ToLower(u.kind()), u.Name)
		}
		return v1.UnitProgressing, "RollingOut", message
	}
	return v1.UnitReady, "", ""
}

// offlineMessage returns the message of an offline unit: what waits for its Nodes. Slow progress
// of the child's own controller, even none, is what to expect then, so it is not a problem.
func (u *unit) offlineMessage() string {
	text := fmt.Sprintf("none of its %d Nodes is ready", u.nodes)
	if u.nodes == 1 {
		text = "its Node is not ready"
	}
	if _, _, waits := u.phase(); waits != "" {
		text += "; until one is, this waits: " + waits
	}
	return text
}

// lossMessage returns what becomes of the child of a lost unit, after the reason why the unit is
// lost if there is room for that.
func (a *assessment) lossMessage(u *unit) string {
	text := fmt.Sprintf("no Node has the label %s=%s", a.Grid.Key, u.Value)
	if !u.loss.since.IsZero() {
		text += " since " + u.loss.since.Format(time.RFC3339)
	}
	child := fmt.Sprintf("%s %s %s", u.kind(), u.Name, a.childOfLost(u))
	if len(text)+len("; ")+len(child) > rowMessageMax {
		return child
	}
	return text + "; " + child
}

// childOfLost returns what becomes of the child of a lost unit, as words that follow its name.
func (a *assessment) childOfLost(u *unit) string {
	due := u.loss.due.Format(time.RFC3339)
	switch {
	case u.deleting():
		return "is being deleted"
	case u.loss.stays != "":
		return "is kept, because " + u.loss.stays
	case u.loss.waits && u.loss.due.IsZero():
		return "is kept, because " + a.places.setting
	case u.loss.waits:
		return fmt.Sprintf("waits until %s at least, because %s and units were deleted within the last hour, see condition %s",
			due, a.places.setting, v1.ConditionDeletionHeld)
	case u.loss.since.IsZero():
		return "is deleted when the grace is over"
	case u.unserved:
		return fmt.Sprintf("never had a ready Pod, and is deleted after %s unless a Node has the label by then", due)
	default:
		return fmt.Sprintf("is deleted after %s unless a Node has the label by then", due)
	}
}

func (a *assessment) misplacedMessage(u *unit) string {
	text := fmt.Sprintf("%d Pods run on Nodes without the label %s=%s", len(u.pods), a.Grid.Key, u.Value)
	if _, never := a.graceOf(u, false); never != "" || !a.evicts(u) {
		return text + "; they are not evicted: delete them to move them into the unit"
	}
	return text + "; they are evicted when the grace is over"
}
