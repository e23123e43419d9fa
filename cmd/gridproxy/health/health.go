package health

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"gridproxy/rules/syncer"

	corev1 "k8s.io/api/core/v1"
)

// ToBeDeletedTaint is what the cluster autoscaler puts on a Node that it is about to
// remove; load balancers must stop sending there (KEP-3836).
const ToBeDeletedTaint = "ToBeDeletedByClusterAutoscaler"

// Config is what a Server works with. All funcs must be safe for concurrent use.
type Config struct {
	Pending     func() time.Time // since when the oldest change waits for the kernel; zero = none does
	LastSuccess func() time.Time // end of the last successful sync; zero = none
	Timeout     time.Duration    // a change that waits longer makes the proxy unhealthy
	Families    []string         // "IPv4", "IPv6": those in use
	// NodeOptional says that a Node object need not exist, as with manifests. Otherwise a
	// node that has none is not eligible, as in kube-proxy 1.36.
	NodeOptional bool
	// Answered is told each status code, for metrics; nil = nobody.
	Answered func(path string, code int)
}

// Server answers. It learns about the Node as an Observer of the syncer.
type Server struct {
	config     Config
	ineligible atomic.Bool // so that a starting proxy, whose rules are still in the kernel, is eligible
	ready      atomic.Bool
}

// New makes a Server.
func New(c Config) *Server { return &Server{config: c} }

// Synced takes over whether the Node may get traffic, and that a run has succeeded: what must answer by
// the time that /readyz does, such as health-check node ports, is opened by Observers before this one.
func (s *Server) Synced(r syncer.Result) {
	s.ineligible.Store(!Eligible(r.Snapshot.Self, s.config.NodeOptional))
	if r.Err == nil {
		s.ready.Store(true)
	}
}

// Eligible reports whether load balancers may send to a node: its object is neither being
// deleted nor tainted for removal. Where the object is missing only optional ones are.
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
	LastUpdated  time.Time               `json:"lastUpdated"`
	CurrentTime  time.Time               `json:"currentTime"`
	NodeEligible *bool                   `json:"nodeEligible,omitempty"` // /healthz only
	Healthy      bool                    `json:"healthy"`
	Status       map[string]FamilyStatus `json:"status"`
}

// FamilyStatus is the health of one address family. One run writes both, so they agree.
type FamilyStatus struct {
	LastUpdated time.Time `json:"lastUpdated"`
	Healthy     bool      `json:"healthy"`
}

// judge is the answer at one moment, without the Node. A proxy is healthy until a change
// has waited for longer than the timeout; then lastUpdated is now, else the last success.
func judge(now, pending, lastSuccess time.Time, c Config) Status {
	healthy := pending.IsZero() || now.Sub(pending) <= c.Timeout
	updated := lastSuccess
	if healthy {
		updated = now
	}
	status := Status{LastUpdated: updated, CurrentTime: now, Healthy: healthy, Status: map[string]FamilyStatus{}}
	for _, family := range c.Families {
		status.Status[family] = FamilyStatus{LastUpdated: updated, Healthy: healthy}
	}
	return status
}

// Healthy reports whether the proxy keeps up with its changes.
func (s *Server) Healthy() bool { return s.now().Healthy }

func (s *Server) now() Status {
	return judge(time.Now(), s.config.Pending(), s.config.LastSuccess(), s.config)
}

// Handler serves /healthz, /livez and /readyz.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", s.healthz)
	mux.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, "/livez", s.now()) })
	mux.HandleFunc("/readyz", s.readyz)
	return mux
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	status, eligible := s.now(), !s.ineligible.Load()
	status.NodeEligible = &eligible
	status.Healthy = status.Healthy && eligible
	s.answer(w, "/healthz", status)
}

func (s *Server) answer(w http.ResponseWriter, path string, status Status) {
	body, err := json.Marshal(status)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	code := http.StatusOK
	if !status.Healthy {
		code = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	s.write(w, path, code, body)
}

// readyz is ready for ever after the first successful sync: what is in the kernel stays.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	if !s.ready.Load() {
		s.write(w, "/readyz", http.StatusServiceUnavailable, []byte("not ready: no sync has succeeded yet\n"))
		return
	}
	s.write(w, "/readyz", http.StatusOK, []byte("ok\n"))
}

func (s *Server) write(w http.ResponseWriter, path string, code int, body []byte) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	if s.config.Answered != nil {
		s.config.Answered(path, code)
	}
	_, _ = w.Write(body) // the client went away; there is nobody to tell
}
