package explain

// Server is one virtual server of the Service.
type Server struct {
	Address   string   `json:"address"` // ip:port/protocol
	Scheduler string   `json:"scheduler"`
	Affinity  string   `json:"affinity,omitempty"` // how long a client keeps its endpoint
	Endpoints []string `json:"endpoints"`          // none = it refuses connections
}

// InChains is one address of the Service that chains serve before any virtual server does.
type InChains struct {
	Address string `json:"address"` // ip:port/protocol, or network:port/protocol
	Packets string `json:"packets"` // which packets: AllPackets or OwnPackets
}

// The values of InChains.Packets.
const (
	AllPackets = "all"
	OwnPackets = "those of this node and its Pods; the virtual server has the others"
)
