package plan

import (
	"time"

	"gridproxy/controller/removal"
)

// Content is what is sent of a Grid.
type Content struct {
	// Object is the Grid as it is applied in a cluster, JSON.
	Object []byte
	// Revision is 16 hexadecimal digits over Object without its annotation AnnotationRevision.
	Revision string
	// TargetNamespace is the namespace in Object.
	TargetNamespace string
	// Selector is AnnotationClusters, if it can be read; equal ones select the same.
	Selector string
	// Selects is AnnotationClusters, parsed; nil: it cannot be read, see Fault.
	Selects func(labels map[string]string) bool
	// Fault is why the Grid cannot be sent as it is; "": it can.
	Fault string
	// Weight is about how many bytes Object takes in an archive.
	Weight int
	// Wanted is whether it has the label superedge.io/fed: "yes".
	Wanted bool
	// Grace is for how long the Grid stays in a cluster that it is not meant for any more; nil: as
	// long as the flag says; negative: for ever.
	Grace *time.Duration
	// Budget is from how many clusters it is removed within an hour; nil: as the flag says.
	Budget *removal.Budget
	// Releases are the removals that it allows.
	Releases removal.Releases
}
