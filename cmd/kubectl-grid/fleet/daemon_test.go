package fleet

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// body is a body of /healthz, written by a daemon whose Node says 12:00:00.
func body(updated string, eligible, healthy bool, families string) []byte {
	return fmt.Appendf(nil, `{"lastUpdated":%q,"currentTime":"2026-01-02T12:00:00Z","nodeEligible":%t,"healthy":%t,"status":%s}`, updated, eligible, healthy, families)
}

// TestJudge: healthy is only what has said so itself.
func TestJudge(t *testing.T) {
	const now, before, never = "2026-01-02T12:00:00Z", "2026-01-02T11:57:00Z", "0001-01-01T00:00:00Z"
	const both = `{"IPv4":{"lastUpdated":"2026-01-02T11:57:00Z","healthy":false},"IPv6":{"lastUpdated":"2026-01-02T12:00:00Z","healthy":true}}`
	forbidden := []byte(`{"kind":"Status","message":"nodes \"a\" is forbidden: cannot get nodes/proxy","code":403}`)
	refused := []byte(`{"kind":"Status","message":"error trying to reach service: dial tcp 10.0.0.1:10256: connect: connection refused","code":503}`)
	for _, test := range []struct {
		name   string
		answer Answer
		state  State
		reason string
		age    string
	}{
		{"in time", Answer{Code: 200, Body: body(now, true, true, both)}, Healthy, "", "0s"},
		{"waits", Answer{Code: 503, Body: body(before, true, false, both)}, Unhealthy, "IPv4: a change waits for too long, last written 3m0s ago; gridproxy status", "3m0s"},
		{"never written", Answer{Code: 503, Body: body(never, true, false, "{}")}, Unhealthy, "nothing has been written since the start", ""},
		{"says unhealthy with code 200", Answer{Code: 200, Body: body(now, true, false, both)}, Unhealthy, "IPv4", "0s"},
		{"says healthy with code 503", Answer{Code: 503, Body: body(now, true, true, both)}, Unhealthy, "status code 503", "0s"},
		{"says healthy with code 500", Answer{Code: 500, Body: body(now, true, true, both)}, Unknown, "status code 500", ""},
		{"does not find its Node", Answer{Code: 503, Body: body(now, false, true, both)}, Unhealthy, "--node-name", "0s"},
		{"clock goes back", Answer{Code: 200, Body: body("2026-01-02T12:05:00Z", true, true, both)}, Healthy, "", "0s"},
		{"no right", Answer{Code: 403, Body: forbidden}, Unknown, "asking needs the right to get nodes/proxy", ""},
		{"no daemon", Answer{Code: 503, Body: refused}, Unknown, "the API server cannot ask: error trying to reach service: dial tcp 10.0.0.1:10256: connect: connection refused", ""},
		{"no answer", Answer{Err: errors.New("no answer within 5s")}, Unknown, "no answer within 5s", ""},
		{"another program", Answer{Code: 200, Body: []byte("ok\n")}, Unknown, "no body of /healthz", ""},
		{"JSON of another program", Answer{Code: 200, Body: []byte("{}")}, Unknown, "no body of /healthz", ""},
		{"nothing", Answer{}, Unknown, "no body of /healthz", ""},
		{"redirected", Answer{Code: 302}, Unknown, "status code 302", ""},
	} {
		d := Judge(&corev1.Node{}, test.answer)
		if d.State != test.state || !strings.Contains(d.Reason, test.reason) || (test.reason == "") != (d.Reason == "") || d.age() != test.age {
			t.Errorf("%s: %s, %q, age %q; want %s, %q, age %q", test.name, d.State, d.Reason, d.age(), test.state, test.reason, test.age)
		}
	}
}

// TestJudgeRemoved: a Node that is about to be removed has a healthy daemon that says 503.
func TestJudgeRemoved(t *testing.T) {
	node := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}}}}
	d := Judge(node, Answer{Code: 503, Body: body("2026-01-02T12:00:00Z", false, true, "{}")})
	if d.State != Healthy || !strings.Contains(d.Reason, "about to be removed") {
		t.Errorf("%+v", d)
	}
}

// TestJudgeBounded: neither a Node nor the API server can fill the terminal or control it.
func TestJudgeBounded(t *testing.T) {
	long := strings.Repeat("x", 15000)
	for _, a := range []Answer{
		{Code: 403, Body: fmt.Appendf(nil, `{"kind":"Status","message":"\u001b[31m%s"}`, long)},
		{Code: 503, Body: body("2026-01-02T12:00:00Z", true, false, `{"\u001b[31m`+long+`":{"healthy":false}}`)},
		{Err: errors.New("\x1b[31m" + long)},
	} {
		if d := Judge(&corev1.Node{}, a); d.State == Healthy || len(d.Reason) > 1100 || strings.Contains(d.Reason, "\x1b") {
			t.Errorf("%s with %d bytes: %.80q", d.State, len(d.Reason), d.Reason)
		}
	}
}

func node(name string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}
