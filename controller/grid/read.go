package grid

import (
	"gridproxy/controller/grid/expand"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReadLive returns a Deployment, StatefulSet or Service as expand.Decide reads it. It is for
// callers that want to know what the controller would decide.
func ReadLive(o client.Object) (expand.Live, error) {
	if c, is := o.(child); is {
		return c.read(), nil
	}
	return live(o)
}
