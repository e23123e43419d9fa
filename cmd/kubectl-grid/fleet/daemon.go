package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"gridproxy/cmd/gridproxy/health"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State is what is known of the daemon of a Node.
type State string

// The states, the worst first.
const (
	Unhealthy State = "unhealthy"
	Unknown   State = "unknown" // it could not be asked
	Healthy   State = "healthy"
)

// Daemon is what is known of one daemon.
type Daemon struct {
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"` // why it is not healthy, or what else is to be known
	// AgeSeconds is how old the rules in force are, by the clock of the Node: 0 while the daemon is
	// healthy; nil = nothing was written yet, or it is not known.
	AgeSeconds *float64 `json:"ageSeconds,omitempty"`
}

// Answer is the answer to one request for /healthz through the API server.
type Answer struct {
	Code int // status code of HTTP
	Body []byte
	Err  error // why no answer came
}

// Judge returns what an answer says about the daemon of a Node.
func Judge(node *corev1.Node, a Answer) Daemon {
	if a.Err != nil {
		return noAnswer("%v", a.Err)
	}
	var body health.Status
	if err := json.Unmarshal(a.Body, &body); err != nil || body.CurrentTime.IsZero() {
		return notAsked(a)
	}
	d := Daemon{State: Unhealthy}
	if !body.LastUpdated.IsZero() {
		age := max(body.CurrentTime.Sub(body.LastUpdated), 0).Seconds()
		d.AgeSeconds = &age
	}
	ineligible := body.NodeEligible != nil && !*body.NodeEligible
	switch {
	case a.Code != http.StatusOK && a.Code != http.StatusServiceUnavailable:
		return noAnswer("/healthz has status code %d, which is neither 200 nor 503", a.Code)
	case !body.Healthy:
		d.Reason = whyUnhealthy(body)
	case ineligible && health.Eligible(node, false):
		d.Reason = "the daemon does not find its Node; check its --node-name"
	case ineligible:
		d.State, d.Reason = Healthy, "the Node is about to be removed: load balancers must not send to it"
	case a.Code != http.StatusOK:
		d.Reason = fmt.Sprintf("/healthz has status code %d, and says not why", a.Code)
	default:
		d.State = Healthy
	}
	return d
}

func noAnswer(format string, args ...any) Daemon {
	return Daemon{State: Unknown, Reason: excerpt.Message(fmt.Sprintf(format, args...))}
}

// notAsked returns the state Unknown for an answer that is not from a daemon. If the API server
// itself answered, the reason has its text.
func notAsked(a Answer) Daemon {
	var status metav1.Status
	if json.Unmarshal(a.Body, &status) != nil || status.Kind != "Status" {
		return noAnswer("status code %d, and no body of /healthz", a.Code)
	}
	text := cmp.Or(excerpt.Of(status.Message), fmt.Sprintf("status code %d", a.Code))
	if a.Code == http.StatusForbidden || a.Code == http.StatusUnauthorized {
		return noAnswer("the API server refuses to ask: %s; asking needs the right to get nodes/proxy", text)
	}
	return noAnswer("the API server cannot ask: %s", text)
}

// whyUnhealthy returns a text about the address families that are not written in time.
func whyUnhealthy(body health.Status) string {
	var all []string
	for _, family := range slices.Sorted(maps.Keys(body.Status)) {
		if of := body.Status[family]; !of.Healthy {
			age := max(body.CurrentTime.Sub(of.LastUpdated), 0).Round(time.Second)
			all = append(all, fmt.Sprintf("%s: a change waits for too long, last written %s ago", family, age))
		}
	}
	switch {
	case len(body.Status) == 0:
		all = append(all, "nothing has been written since the start")
	case len(all) == 0:
		all = append(all, "an address family has not been written since the start")
	}
	return excerpt.Message(strings.Join(all, "; ") + "; gridproxy status on the Node says more")
}
