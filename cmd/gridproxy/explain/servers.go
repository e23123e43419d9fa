package explain

// Server is one virtual server of the Service, in mode ipvs.
type Server struct {
	Address   string   `json:"address"` // ip:port/protocol
	Scheduler string   `json:"scheduler"`
	Affinity  string   `json:"affinity,omitempty"` // how long a client keeps its endpoint
	Endpoints []string `json:"endpoints"`          // none = it refuses
}

// InChains is what chains decide before any virtual server is asked, in mode ipvs.
type InChains struct {
	Address string `json:"address"` // ip:port/protocol, or network:port/protocol
	Packets string `json:"packets"` // which of them
}

// The values of InChains.Packets.
const (
	AllPackets = "all"
	OwnPackets = "those of this node and its Pods; the virtual server has the others"
)
