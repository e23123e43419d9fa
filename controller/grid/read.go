package grid

import (
	"gridproxy/controller/expand"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReadLive is a Deployment, StatefulSet or Service as expand.Decide reads it. It is for those who
// want to know what the controller would decide. Maps are shared with o.
func ReadLive(o client.Object) (expand.Live, error) { return live(o) }
