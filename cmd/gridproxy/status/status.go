package status

import (
	"fmt"
	"strings"
	"time"
)

// Status is the answer. A client ignores fields that it does not know; a field never changes its
// meaning.
type Status struct {
	CurrentTime time.Time `json:"currentTime"`
	Healthy     bool      `json:"healthy"`
	Problems    []string  `json:"problems,omitempty"` // why it is not healthy, the most urgent first

	Daemon           Daemon            `json:"daemon"`
	Node             Node              `json:"node"`
	Knowledge        Knowledge         `json:"knowledge"`
	Sync             Sync              `json:"sync"`
	LastSync         *Run              `json:"lastSync,omitempty"`
	LastVerification *Run              `json:"lastVerification,omitempty"` // that was not interrupted
	Families         []Family          `json:"families"`
	Services         Services          `json:"services"`
	FirstRefused     []string          `json:"firstRefused,omitempty"`   // NAMESPACE/NAME of a few of Services.Refused
	FirstMalformed   []string          `json:"firstMalformed,omitempty"` // likewise
	Quarantined      []QuarantinedPort `json:"quarantined,omitempty"`    // the first few
	UnopenedPorts    int               `json:"unopenedHealthPorts,omitempty"`
	FirstUnopened    []UnopenedPort    `json:"firstUnopenedHealthPorts,omitempty"` // a few of these
	Drift            Drift             `json:"drift"`
	OtherProxy       *OtherProxy       `json:"otherProxy,omitempty"` // none is suspected
	DNS              []DNSPath         `json:"dns,omitempty"`        // with --local-dns
}

// Daemon is what never changes while the process runs.
type Daemon struct {
	Version string    `json:"version"`
	Commit  string    `json:"commit"`
	Started time.Time `json:"started"`
	Mode    string    `json:"mode"`            // --proxy-mode
	Variant string    `json:"iptablesVariant"` // nft or legacy
	Shadow  bool      `json:"shadow"`
	Source  string    `json:"source"` // SourceAPIServer or SourceManifests
}

// The values of Daemon.Source.
const (
	SourceAPIServer = "API server"
	SourceManifests = "manifests"
)

// Node is this node, as the cluster knows it.
type Node struct {
	Name     string `json:"name"`
	Known    bool   `json:"known"`    // its Node object exists
	Eligible bool   `json:"eligible"` // load balancers may send to it, as /healthz says
}

// Knowledge is how current the known state of the cluster is.
type Knowledge struct {
	Snapshot   time.Time `json:"snapshot,omitzero"`  // when a run last took up a Snapshot
	LostSince  time.Time `json:"lostSince,omitzero"` // since when the source cannot be read
	LostReason string    `json:"lostReason,omitempty"`
	HeldBack   bool      `json:"heldBack"` // the API server's list is held back
	// HeldEndpoints are used although they are not ready: they turned so in a wave when the API server
	// came back.
	HeldEndpoints int            `json:"heldEndpoints,omitempty"`
	Held          []HeldEndpoint `json:"held,omitempty"` // the first of them
	// Saved is when the state in force was saved to disk, if the API server has not been read since
	// the start; zero = it has.
	Saved time.Time `json:"saved,omitzero"`
	// APIProxies are the node-local API proxies that the EndpointSlices of default/kubernetes name.
	APIProxies []APIProxy `json:"apiProxies,omitempty"`
}

// APIProxy is a node-local proxy of the API server.
type APIProxy struct {
	Address string `json:"address"`
	Answers bool   `json:"answers"` // default/kubernetes leads to it; else to the API servers
}

// HeldEndpoint is an endpoint that is used although it is not ready.
type HeldEndpoint struct {
	Service string    `json:"service"` // NAMESPACE/NAME
	Address string    `json:"address"`
	Node    string    `json:"node,omitempty"`
	Until   time.Time `json:"until"` // at the latest
}

// Sync is the loop now.
type Sync struct {
	Live     bool      `json:"live"`              // as /livez
	Ready    bool      `json:"ready"`             // as /readyz
	Pending  time.Time `json:"pending,omitzero"`  // the oldest change that waits to be written
	LastStep time.Time `json:"lastStep,omitzero"` // of the sync in progress
	Hangs    bool      `json:"hangs"`             // the sync in progress makes no progress any more
	// LimitSeconds is how long a change may wait.
	LimitSeconds float64 `json:"limitSeconds"`
}

// Run is a run that has ended.
type Run struct {
	End         time.Time `json:"end"`
	TookSeconds float64   `json:"tookSeconds"`
	ReadBack    bool      `json:"readBack"`       // the kernel's rules were read; not needed where no other process wrote
	Repaired    int       `json:"repairedChains"` // that another process had changed
	Error       string    `json:"error,omitempty"`
}

// StateStarting is the Family.State before the first run has ended.
const StateStarting = "starting"

// Family is an address family after the last run.
type Family struct {
	Name    string    `json:"name"`             // IPv4 or IPv6
	State   string    `json:"state"`            // as in the metric gridproxy_family_state; StateStarting
	Reason  string    `json:"reason,omitempty"` // why it failed or is left out
	Synced  time.Time `json:"synced,omitzero"`  // when it was last written
	Healthy bool      `json:"healthy"`          // no change has waited for too long
}

// Services counts Services.
type Services struct {
	All         int `json:"all"`
	Open        int `json:"open"`
	Closed      int `json:"closed"`      // confined to a unit
	Refused     int `json:"refused"`     // closed, and without an endpoint that this node may use
	Malformed   int `json:"malformed"`   // their topology annotations cannot be read
	Quarantined int `json:"quarantined"` // the kernel refuses their rules
}

// QuarantinedPort is a port of a Service whose rules the kernel refuses, in one family.
type QuarantinedPort struct {
	Service string `json:"service"` // NAMESPACE/NAME
	Port    string `json:"port"`
	Family  string `json:"family"`
	Reason  string `json:"reason"`
}

// UnopenedPort is a health-check node port that could not be opened.
type UnopenedPort struct {
	Service string `json:"service"` // NAMESPACE/NAME
	Address string `json:"address"` // with the port
	Port    uint16 `json:"port"`
	Reason  string `json:"reason"`
}

// Drift is what other processes changed in our rules and was repaired.
type Drift struct {
	Repaired int       `json:"repairedChains"` // since the start of the daemon
	Last     time.Time `json:"last,omitzero"`
}

// OtherProxy is another service proxy that is suspected to write the same rules.
type OtherProxy struct {
	Since   time.Time `json:"since"`
	Message string    `json:"message"`
}

// DNSPath is where DNS queries of one family go.
type DNSPath struct {
	Address string    `json:"address"`           // of the DNS servers of this node
	Local   bool      `json:"local"`             // queries go there, else to the DNS of the cluster
	Unasked bool      `json:"unasked,omitempty"` // no query comes: the cluster's DNS has no address of the family
	Reason  string    `json:"reason,omitempty"`
	Since   time.Time `json:"since"`

	ReturnWaitSeconds float64 `json:"returnWaitSeconds,omitempty"` // for which grid-dns must still be well until queries go back
}

// NotesOn returns what this daemon enforces of a Service, NAMESPACE/NAME, otherwise than the
// API server says, a sentence each.
func (s Status) NotesOn(service string) []string {
	var notes []string
	if saved := s.Knowledge.Saved; !saved.IsZero() {
		notes = append(notes, fmt.Sprintf("the daemon has not read the API server since its start: it enforces the state that was saved at %s, %s ago",
			saved.UTC().Format(time.RFC3339), s.age(saved)))
	}
	var held []string
	var until time.Time
	for _, e := range s.Knowledge.Held {
		if e.Service == service {
			held, until = append(held, e.Address), e.Until
		}
	}
	if len(held) > 0 {
		notes = append(notes, fmt.Sprintf("used although not ready, until %s at the latest: %s; they turned so in a wave when the API server was back (--reconnect-grace)",
			until.UTC().Format(time.RFC3339), strings.Join(held, ", ")))
	}
	return notes
}
