package health

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/syncer"

	corev1 "k8s.io/api/core/v1"
)

// ToBeDeletedTaint is the taint of a Node that the cluster autoscaler is about to remove. Load
// balancers must stop sending to it (KEP-3836).
const ToBeDeletedTaint = "ToBeDeletedByClusterAutoscaler"

// Config is what a Server works with. All funcs must be safe for concurrent use.
type Config struct {
	Pending     func(rules.Family) time.Time // since when the oldest change waits to be written
	LastSuccess func(rules.Family) time.Time // end of the last successful sync
	Timeout     time.Duration                // a change that waits longer makes the family unhealthy
	Families    rules.FamilySet              // of this machine, until the first run reports them

	// Progress is when the sync in progress last advanced; zero = no sync is in progress.
	Progress func() time.Time
	// FirstStep limits one step of a sync before any sync has succeeded. Values below Timeout count
	// as Timeout.
	FirstStep time.Duration

	// NodeOptional means that the Node object need not exist, as with manifests. Otherwise a node
	// without one is not eligible, as in kube-proxy 1.36.
	NodeOptional bool
	// Answered is called with each status code, for metrics.
	Answered func(path string, code int)
}

// Server serves the health endpoints. As an Observer of the syncer it learns about Node and
// families.
type Server struct {
	config     Config
	ineligible atomic.Bool // false at first: the rules of the previous daemon are still in the kernel
	ready      atomic.Bool
	families   atomic.Pointer[families]
	saved      atomic.Pointer[time.Time] // when the Snapshot of the last run was saved
	synced     rules.FamilySet           // at least once; only the syncing goroutine uses it
}

// New makes a Server.
func New(c Config) *Server {
	s := &Server{config: c}
	s.families.Store(&families{served: c.Families, needed: c.Families})
	return s
}

// Synced records whether the Node may get traffic, which families are served, and which of them
// have synced. Observers before this one open what must answer once /readyz is ready, such as
// health-check node ports.
func (s *Server) Synced(r syncer.Result) {
	s.ineligible.Store(!Eligible(r.Snapshot.Self, s.config.NodeOptional))
	s.saved.Store(&r.Snapshot.Saved)
	if r.Backends == nil {
		return // nothing was decided, so nothing is known of the families
	}
	now := familiesOf(r)
	s.families.Store(&now)
	for f, o := range r.Changes.Families {
		s.synced[f] = s.synced[f] || o.Synced()
	}
	if now.ready(s.synced) {
		s.ready.Store(true)
	}
}

// Eligible reports whether load balancers may send to a node: its object is neither being deleted
// nor tainted for removal. Without an object, the node is eligible only if the object is optional.
func Eligible(node *corev1.Node, optional bool) bool {
	if node == nil {
		return optional
	}
	for _, t := range node.Spec.Taints {
		if t.Key == ToBeDeletedTaint {
			return false
		}
	}
	return node.DeletionTimestamp == nil
}

// Status is the body of /healthz and /livez, as kube-proxy writes it.
type Status struct {
	// LastUpdated is the present time if the code is 200, as in releases of kube-proxy that synced
	// periodically. Otherwise it is the latest time in Status; zero if no family has synced.
	LastUpdated  time.Time               `json:"lastUpdated"`
	CurrentTime  time.Time               `json:"currentTime"`
	NodeEligible *bool                   `json:"nodeEligible,omitempty"` // /healthz only
	Healthy      bool                    `json:"healthy"`                // whatever NodeEligible is
	Status       map[string]FamilyStatus `json:"status,omitempty"`
}

// FamilyStatus is the health of one address family. A family that is left out, or that has not
// synced yet, has no status.
type FamilyStatus struct {
	LastUpdated time.Time `json:"lastUpdated"` // end of the last successful sync
	Healthy     bool      `json:"healthy"`
}

// judge returns the status of one family. It is healthy unless a change has waited for as long
// as the timeout.
func (c Config) judge(now time.Time, f rules.Family) FamilyStatus {
	pending := c.Pending(f)
	return FamilyStatus{
		LastUpdated: c.LastSuccess(f),
		Healthy:     pending.IsZero() || now.Sub(pending) < c.Timeout,
	}
}

// FamilyHealthy reports whether the changes of a family are written in time.
func (s *Server) FamilyHealthy(f rules.Family) bool { return s.config.judge(time.Now(), f).Healthy }

// judged is the health of the families at one moment.
type judged struct {
	at       time.Time
	families map[rules.Family]FamilyStatus // without those that are left out
	required rules.FamilySet
}

// now judges the families that are served.
func (s *Server) now() judged {
	families := s.families.Load()
	j := judged{at: time.Now(), families: map[rules.Family]FamilyStatus{}, required: families.required()}
	for _, f := range rules.Families() {
		if families.served[f] {
			j.families[f] = s.config.judge(j.at, f)
		}
	}
	return j
}

// healthy reports whether all required families are healthy, and whether any family is.
func (j judged) healthy() (all, some bool) {
	all = true
	for f, of := range j.families {
		all = all && (of.Healthy || !j.required[f])
		some = some || of.Healthy
	}
	return all, some
}

// status returns the body of an answer. good means that the code of the answer is 200.
func (j judged) status(healthy, good bool) Status {
	status := Status{CurrentTime: j.at, Healthy: healthy, Status: map[string]FamilyStatus{}}
	for f, of := range j.families {
		if of.LastUpdated.IsZero() {
			continue
		}
		status.Status[f.String()] = of
		if of.LastUpdated.After(status.LastUpdated) {
			status.LastUpdated = of.LastUpdated
		}
	}
	if good {
		status.LastUpdated = j.at
	}
	return status
}

// Handler serves /healthz, /livez and /readyz.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", s.healthz)
	mux.HandleFunc("/livez", s.livez)
	mux.HandleFunc("/readyz", s.readyz)
	return mux
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	judged, eligible := s.now(), !s.ineligible.Load()
	all, _ := judged.healthy()
	good := all && eligible
	status := judged.status(all, good)
	status.NodeEligible = &eligible
	s.answer(w, "/healthz", good, status)
}

// livez answers as healthz does, except where a restart would not help: for a node that is
// about to be removed, for a family that fails while another one works, and for a long sync
// that makes progress.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request) {
	judged := s.now()
	alive := s.alive(judged)
	s.answer(w, "/livez", alive, judged.status(alive, alive))
}

func (s *Server) alive(j judged) bool {
	all, some := j.healthy()
	return all || some || s.config.progressing(j.at)
}

// progressing reports whether a sync is in progress that does not hang. The first sync writes all
// rules, in steps that may take as long as FirstStep.
func (c Config) progressing(now time.Time) bool {
	limit := max(c.Timeout, c.FirstStep)
	for _, f := range rules.Families() {
		if !c.LastSuccess(f).IsZero() {
			limit = c.Timeout
		}
	}
	progress := c.Progress()
	return !progress.IsZero() && now.Sub(progress) <= limit
}

// answer writes a status, with code 200 if the answer is good, else 503.
func (s *Server) answer(w http.ResponseWriter, path string, good bool, status Status) {
	body, err := json.Marshal(status)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	code := http.StatusOK
	if !good {
		code = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	s.write(w, path, code, body)
}

// readyz answers with code 503 until every family that this node needs has synced once, then
// with 200 even if one fails: the rules stay in the kernel. With ?verbose it says where the
// known state of the cluster comes from.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if !s.ready.Load() {
		s.write(w, "/readyz", http.StatusServiceUnavailable, []byte("not ready: an address family of this node has not synced yet; the metric gridproxy_family_state and the log say which\n"))
		return
	}
	body := "ok\n"
	if r.URL.Query().Has("verbose") {
		body += "in force: " + s.origin(time.Now()) + "\n"
	}
	s.write(w, "/readyz", http.StatusOK, []byte(body))
}

// origin returns, as text, where the Snapshot of the last run came from.
func (s *Server) origin(now time.Time) string {
	saved := s.saved.Load()
	if saved == nil || saved.IsZero() {
		return "the state of the source"
	}
	return fmt.Sprintf("the state saved on disk at %s, %s ago, because the API server has not been read yet",
		saved.UTC().Format(time.RFC3339), max(now.Sub(*saved), 0).Round(time.Second))
}

func (s *Server) write(w http.ResponseWriter, path string, code int, body []byte) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	s.config.Answered(path, code)
	_, _ = w.Write(body) // the client has closed the connection
}

// Checks are what the endpoints answer at one moment, and what these answers depend on.
type Checks struct {
	At          time.Time
	Live, Ready bool // as /livez and /readyz
	Eligible    bool // load balancers may send to this node
	Families    map[rules.Family]FamilyStatus
	Pending     time.Time     // the oldest change of a served family that waits to be written
	Progress    time.Time     // the last step of the sync in progress
	Hangs       bool          // the sync in progress makes no progress any more, as for /livez
	Timeout     time.Duration // a change that waits longer makes its family unhealthy
}

// Checks returns what the endpoints would answer now. No lock is taken that is held for longer
// than an assignment, so it also answers while a sync hangs. Safe for concurrent use.
func (s *Server) Checks() Checks {
	j := s.now()
	c := Checks{
		At: j.at, Live: s.alive(j), Ready: s.ready.Load(), Eligible: !s.ineligible.Load(),
		Families: j.families, Progress: s.config.Progress(), Timeout: s.config.Timeout,
	}
	for f := range j.families {
		if p := s.config.Pending(f); !p.IsZero() && (c.Pending.IsZero() || p.Before(c.Pending)) {
			c.Pending = p
		}
	}
	c.Hangs = !c.Progress.IsZero() && !s.config.progressing(j.at)
	return c
}
