package expand

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// unit is one unit of a Grid: its desired child, its existing child, and what prevents the one from
// becoming the other. A ServiceGrid has one unit, without a value.
type unit struct {
	Child
	grid    Grid
	made    *made // what Child is a copy of
	memo    *Memo
	nodes   int
	offline bool // none of its Nodes is ready
	// resumes is until when a rollout that was stuck without ready Nodes gets another chance; zero:
	// it needs none, or has had it.
	resumes   time.Time
	ownership ownership
	live      *Live // the object that has the child's name; nil if none is known
	applied   Applied
	repairs   Repairs
	withheld  bool  // it has no child and gets none: see limit
	loss      *loss // nil while it has Nodes
	unserved  bool  // no Pod of its child has ever been ready
	pods      []Pod // of the child, outside the unit
}

// ownership says whose the object at a child's name is.
type ownership int

const (
	unread  ownership = iota // not read yet
	free                     // there is no object
	ours                     // the Grid controls it
	orphan                   // it has no controller and the Grid's label: to be adopted
	foreign                  // another owner's, never written
)

// ownershipOf returns whose an object is; free for nil. The UID of the controller comes before
// all labels, as in SuperEdge's table.
func (g Grid) ownershipOf(l *Live) ownership {
	switch {
	case l == nil:
		return free
	case l.Owner == g.UID && g.UID != "": // a Grid in a file owns nothing
		return ours
	case l.Owner == "" && l.Labels.Get(v1.LabelSelector) == g.selector():
		return orphan
	default:
		return foreign
	}
}

// ValueOf returns the value of the unit for which the Grid created an object; "" if the object
// does not look like a child of it. The first value that fits the object's name counts: our
// annotation, the nodeSelector (SuperEdge's children have no annotation), the name itself. The
// key is the child's own, because the Grid's may have been edited since.
func ValueOf(g Grid, l Live) string {
	key := cmp.Or(l.Annotations.Get(v1.AnnotationKey), l.Labels.Get(v1.LabelKey))
	if key == topology.LabelValue(g.Key) {
		key = g.Key
	}
	rest, _ := strings.CutPrefix(l.Name, g.Name+"-")
	for _, value := range []string{l.Annotations.Get(v1.AnnotationValue), l.NodeSelector.Get(key), l.NodeSelector.Get(g.Key), rest} {
		if value != "" && g.childName(value) == l.Name {
			return value
		}
	}
	return ""
}

// problem returns why the unit does not have its desired child; nil if it has, or is about to
// have it.
func (u *unit) problem() *Problem {
	switch {
	case u.Problem != nil:
		return u.Problem
	case u.ownership == foreign:
		return u.collision()
	default:
		return u.refused()
	}
}

// refused returns the API server's refusal of exactly this desired child for exactly this
// object; nil if it has not refused it. While the refusal is remembered, only another desired
// child or another object is tried. A Service that stays headless counts as refused.
func (u *unit) refused() *Problem {
	if u.staysHeadless() {
		return Immutable("a Service with clusterIP None keeps it")
	}
	if u.applied.Refused == nil || u.applied.UID != u.uid() || u.applied.Desired != u.fingerprint() {
		return nil
	}
	return u.applied.Refused
}

// fingerprint returns the Fingerprint of the desired child. It is computed at the first call,
// because it is expensive, and most unchanged units do not need it for their status.
func (u *unit) fingerprint() string {
	if u.made.print == "" {
		u.made.print = Fingerprint(u.Child)
	}
	return u.made.print
}

// staysHeadless reports whether the template does not name a cluster IP any more, but the
// existing Service is headless. The API server would silently keep it headless, although it
// refuses the opposite change.
func (u *unit) staysHeadless() bool {
	if u.grid.Kind != ServiceGrid || u.ownership != ours || u.Object == nil || u.live.ClusterIP != corev1.ClusterIPNone {
		return false
	}
	wish, _ := u.template("clusterIP").(string)
	return wish == "" && u.template("clusterIPs") == nil && u.template("type") != string(corev1.ServiceTypeExternalName)
}

func (u *unit) collision() *Problem {
	whose := fmt.Sprintf("has no label %s=%s", v1.LabelSelector, u.grid.selector())
	if u.live.Owner != "" {
		whose = "has another controller, " + cmp.Or(u.live.OwnerName, string(u.live.Owner))
	}
	remedy := "rename it, or give the Grid another name, or delete it with --cascade=orphan, which leaves its Pods"
	if u.live.Owner == "" {
		remedy += ", or set that label to hand it to the Grid"
	}
	return &Problem{ReasonNameCollision, fmt.Sprintf("%s %s exists and %s, so it is left untouched: %s", u.kind(), u.Name, whose, remedy)}
}

func (u *unit) uid() (uid types.UID) {
	if u.live != nil {
		uid = u.live.UID
	}
	return uid
}

func (u *unit) deleting() bool { return u.live != nil && u.live.Deleting }

func (u *unit) kind() string { return u.grid.Kind.Child().Kind }
