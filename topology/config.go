package topology

// Config is what the operator decides about closure.
type Config struct {
	NodesWithoutUnit NodesWithoutUnit // "" = Closed

	// ServiceProxyName is the value of LabelServiceProxyName that makes a Service ours.
	// "": those without the label, as kube-proxy's.
	ServiceProxyName string
}

// NodesWithoutUnit is what a known node that carries none of a Service's topology keys
// gets of it. An unknown node gets nothing, whatever this says.
type NodesWithoutUnit string

// The values of --nodes-without-unit.
const (
	WithoutUnitClosed NodesWithoutUnit = "closed" // nothing, as SuperEdge
	WithoutUnitLocal  NodesWithoutUnit = "local"  // its own endpoints
	WithoutUnitOpen   NodesWithoutUnit = "open"   // every endpoint
)
