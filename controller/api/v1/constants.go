package v1

// Labels and annotations, of SuperEdge where its name is given as the source.
const (
	// LabelSelector is on every child: the Grid's name (SuperEdge).
	LabelSelector = "superedge.io/grid-selector"
	// LabelKey is on every child: the topology key (SuperEdge).
	LabelKey = "superedge.io/grid-uniq-key"
	// LabelUnit is in the selector and the Pods of children made with AnnotationUnitSelector: the
	// unit's value, made label-safe.
	LabelUnit = "superedge.io/grid-value"

	// LabelFingerprint is on every Deployment and StatefulSet that is a child: which desired child
	// was last applied to it.
	LabelFingerprint = "superedge.io/grid-fingerprint"

	// LabelTemplateHash is in the Pod templates of SuperEdge's children and, since it wrote it
	// there, in Grids (SuperEdge).
	LabelTemplateHash = "superedge.io/template-hash-key"

	// LabelDistributed is on a Grid that represents another cluster, in the namespace of that
	// cluster (SuperEdge).
	LabelDistributed = "superedge.io/dis"

	// AnnotationGrid, AnnotationKey and AnnotationValue hold on a child what its labels can hold
	// only where it is a legal label value.
	AnnotationGrid  = "superedge.io/grid"
	AnnotationKey   = "superedge.io/grid-key"
	AnnotationValue = "superedge.io/grid-value"

	// AnnotationLostAt on a child: since when no Node carries its unit's value, RFC 3339.
	AnnotationLostAt = "superedge.io/unit-lost-at"
	// AnnotationRemovalGrace on a child or a Grid: a Go duration, or "never".
	AnnotationRemovalGrace = "superedge.io/unit-removal-grace"
	// AnnotationRemovalBudget on a Grid: how many children of lost units may be deleted within an
	// hour, as a number or a percentage of the units.
	AnnotationRemovalBudget = "superedge.io/unit-removal-budget"
	// AnnotationAllowRemoval on a Grid: the losses after which a child may be deleted though
	// deletions are held or the budget is spent, as unit@unit-lost-at, separated by commas.
	AnnotationAllowRemoval = "superedge.io/allow-unit-removal"
	// AnnotationUnitSelector on a Grid: "true" gives children that are newly made selectors that
	// exclude each other.
	AnnotationUnitSelector = "superedge.io/unit-selector"
	// AnnotationOnImmutableChange on a Grid: "Recreate" replaces a child whose change its API
	// forbids.
	AnnotationOnImmutableChange = "superedge.io/on-immutable-change"
	// AnnotationMisplacedPods on a Grid: "Keep" leaves Pods on Nodes that have left their unit.
	AnnotationMisplacedPods = "superedge.io/misplaced-pods"
	// AnnotationPaused on a Grid: "true" for all units, or the values of those in which nothing is
	// changed, separated by commas; "false" for none.
	AnnotationPaused = "superedge.io/paused"
	// AnnotationMaxUnits on a Grid: a whole number of units above which no child is created, if it
	// is below the controller's --max-units.
	AnnotationMaxUnits = "superedge.io/max-units"

	// AnnotationTopologyKeys on a Service: a JSON list of label keys; the node daemon's closure
	// (SuperEdge).
	AnnotationTopologyKeys = "topologyKeys"

	// DefaultTemplate is the name of spec.template among the templates (SuperEdge).
	DefaultTemplate = "default"
)
