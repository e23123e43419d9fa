package v1alpha1

// Labels and annotations, of SuperEdge where its name is given as the source.
const (
	// LabelFederated on a Grid of the hub: "yes" distributes it (SuperEdge).
	LabelFederated = "superedge.io/fed"
	// LabelHub is on every Grid that a hub has sent: the UID of the hub's Namespace kube-system.
	LabelHub = "superedge.io/hub"
	// LabelCluster is on the Lease of a member, on its reports and on bundles for it: the name of
	// its FleetCluster.
	LabelCluster = "superedge.io/cluster"

	// AnnotationClusters on a Grid of the hub: a label selector of FleetClusters. Absent: all.
	AnnotationClusters = "superedge.io/clusters"
	// AnnotationTargetNamespace on a Grid of the hub: its namespace in the members. Absent: the
	// same (SuperEdge).
	AnnotationTargetNamespace = "superedge.io/target-namespace"
	// AnnotationFrom is on every Grid that a hub has sent: <hub>/<uid>, the UIDs of the hub's
	// Namespace kube-system and of the Grid there.
	AnnotationFrom = "superedge.io/from"
	// AnnotationRevision is on every Grid that a hub has sent: which content was sent, 16
	// hexadecimal digits.
	AnnotationRevision = "superedge.io/from-revision"
	// AnnotationRelease on a FleetCluster: UIDs, separated by commas, of Grids that the hub does not
	// know and that may be removed from the cluster all the same. See ConditionDistributionHeld.
	AnnotationRelease = "superedge.io/release-distribution"
	// AnnotationHeartbeat is on the Lease of a member: a Heartbeat as JSON.
	AnnotationHeartbeat = "superedge.io/heartbeat"
	// AnnotationReportBytes is on a GridReport of more than MaxReport: how large it is. The hub has it
	// in its cache only, in the place of the content.
	AnnotationReportBytes = "superedge.io/report-bytes"

	// Federated is the value of LabelFederated.
	Federated = "yes"
	// Finalizer is on the Grids that are distributed and on FleetClusters.
	Finalizer = "superedge.io/federation"
	// NamespacePrefix and the name of a FleetCluster are its namespace on the hub: fleet-west.
	NamespacePrefix = "fleet-"
	// HeartbeatLease is the name of the Lease of a member, in its namespace on the hub.
	HeartbeatLease = "member"
	// MemberAccount is the name of a member's ServiceAccount, in its namespace on the hub.
	MemberAccount = "member"
	// HubSecret is the name of the Secret in a member, in the namespace of its grid-controller, with
	// how it reaches the hub.
	HubSecret = "fleet-hub"
	// KubeConfigSecret is the name of the Secret with a member's kubeconfig, in its namespace on the
	// hub, as grid-controller join writes it.
	KubeConfigSecret = "member-kubeconfig"
)

// The types of a FleetCluster's conditions.
const (
	// ConditionReachable: the cluster was heard within the last 90 s.
	ConditionReachable = "Reachable"
	// ConditionCurrent: every Grid in the cluster is what the hub has.
	ConditionCurrent = "Current"
	// ConditionStale: what is known of the cluster is old, because it is silent.
	ConditionStale = "Stale"
	// ConditionDistributionHeld: nothing is changed in the cluster, because it has Grids of this hub
	// that the hub does not know. See AnnotationRelease.
	ConditionDistributionHeld = "DistributionHeld"
	// ConditionEngineMissing: no Flux applies what is sent.
	ConditionEngineMissing = "EngineMissing"
	// ConditionClusterReplaced: the cluster that answers is not the one that answered before.
	ConditionClusterReplaced = "ClusterReplaced"
)

// Bounds of what is distributed.
const (
	// MaxGrids is how many Grids a cluster can get.
	MaxGrids = 1000
	// MaxNamespaceGrids is how many of them can be from one namespace of the hub, so that one
	// tenant cannot take all.
	MaxNamespaceGrids = 250
	// MaxBundle is how many bytes of packed objects a GridBundle can hold.
	MaxBundle = 900_000
	// MaxReport is how many bytes of JSON a GridReport can have.
	MaxReport = 200_000
	// MaxMessage is how many bytes the message of a Problem can have.
	MaxMessage = 512
	// MaxReportStates is how many bytes of states, with their names, a GridReport can have.
	MaxReportStates = 80_000
)
