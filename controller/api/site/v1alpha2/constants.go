package v1alpha2

// Labels, annotations, taints and finalizers; of SuperEdge but where the comment says "ours".
const (
	// UnitMark is the value of the label <unit> on a Node that the unit holds.
	UnitMark = "nodeunits.superedge.io"
	// GroupMark is the value of the label <group> on a NodeUnit that the group holds. The Nodes of
	// that unit carry the label <group>: <unit>, which is what a Grid's gridUniqKey selects.
	GroupMark = "nodegroups.superedge.io"

	// LabelKeysHash is on a NodeUnit that was made for a group's autoFindNodeKeys: the SHA-1 of the
	// sorted keys, written one after the other, in hexadecimal.
	LabelKeysHash = "site.superedge.io/node-group-auto-keys-hash"

	// FinalizerUnit and FinalizerGroup stay on an object that is being deleted until no Node
	// carries anything of it.
	FinalizerUnit  = "site.superedge.io/nodeunit"
	FinalizerGroup = "site.superedge.io/finalizer"

	// RecordPrefix, before 16 hexadecimal digits of a SHA-256, is the key of a label on a Node: one
	// for each taint and each restricted label (RestrictedKey) that a unit has set there. The digits
	// are those of key:effect of a taint, or of the label's key. NodeRestriction keeps kubelets from
	// writing it. Ours.
	RecordPrefix = "ours.site.superedge.io.node-restriction.kubernetes.io/"
	// RecordTaint is its value for a taint.
	RecordTaint = "taint"
	// RecordLabel is its value for a label.
	RecordLabel = "label"
	// RecordKept is its value for a label that is kept although no unit asks for it.
	RecordKept = "kept"

	// AnnotationTaints on a Node lists which of its taints are ours: key:effect, separated by
	// commas. It is written for the release before RecordPrefix, and read once after the upgrade: a
	// kubelet can write it. Ours.
	AnnotationTaints = "site.superedge.io/taints"
	// AnnotationKeptLabels on a Node lists the keys of labels that stay on it although the unit or
	// group that put them there is gone, because a Grid or a Service names them; separated by
	// commas. Ours.
	AnnotationKeptLabels = "site.superedge.io/kept-labels"
	// AnnotationAllowRemoval on a NodeUnit, a NodeGroup or a Node lists the keys of labels that may
	// be removed although a Grid or a Service names them; separated by commas. Ours.
	AnnotationAllowRemoval = "site.superedge.io/allow-removal"
	// TaintUnschedulable, with effect NoSchedule, is on the Nodes of a unit with unschedulable:
	// true. Ours.
	TaintUnschedulable = "site.superedge.io/unschedulable"

	// DefaultUnit is the name of the unit of all Nodes.
	DefaultUnit = "unit-node-all"
)

// The types of conditions. A condition is there only while it is True.
const (
	// ConditionConflict: something that this object asks for is not done, because another unit,
	// another group or another program asks for something else.
	ConditionConflict = "Conflict"
	// ConditionInvalid: something in the spec cannot be used and is left out.
	ConditionInvalid = "Invalid"
	// ConditionNotImplemented: a field is stored and has no effect.
	ConditionNotImplemented = "NotImplemented"
	// ConditionMissing: the spec names a Node or a NodeUnit that does not exist.
	ConditionMissing = "Missing"
	// ConditionInUse: Nodes keep a label that this object has put there and does not ask for any
	// more, because a Grid or a Service names its key.
	ConditionInUse = "InUse"
	// ConditionDeletionHeld: most of a group's own units have lost all their Nodes, so none of them
	// is deleted.
	ConditionDeletionHeld = "DeletionHeld"
)
