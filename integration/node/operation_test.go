package node

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	healthz = netip.MustParseAddrPort("127.0.0.1:10256")
	metrics = netip.MustParseAddrPort("127.0.0.1:10249")
)

// TestOperation goes through a day of a daemon: one control plane, because that is what
// takes time to start.
func TestOperation(t *testing.T) {
	w := newOperatedNode(t)
	w.addService("web", "10.96.0.10", "bj-3", "gz-2")
	w.start()
	wait.Until(w.t, "web is confined", func() error { return w.wantRule("10.0.9.1:8080", true) })
	must(t, w.wantRule("10.0.9.2:8080", false))
	for _, step := range []struct {
		name string
		run  func(*testing.T, *operatedNode)
	}{
		{"answers", testAnswers}, {"last endpoint", testLastEndpoint}, {"malformed", testMalformed},
		{"metrics", testMetrics}, {"eligible", testEligible}, {"quarantine", testQuarantine}, {"away", testAway},
	} {
		t.Run(step.name, func(t *testing.T) { step.run(t, w.in(t)) })
	}
}

// testAnswers: what render and explain say is what the daemon does.
func testAnswers(t *testing.T, w *operatedNode) {
	text, err := w.node.Run(w.ctx, nil, w.binary, "explain", "web", "--node-name", here, "--kubeconfig", w.Kubeconfig())
	must(t, err)
	for _, want := range []string{"10.0.9.1:8080  bj-3  location=beijing  kept     -", "10.0.9.2:8080  gz-2  -                 dropped  not in this unit (its Node is not watched)"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("explain lacks %q:\n%s", want, text)
		}
	}
	text, err = w.node.Run(w.ctx, nil, w.binary, "render", "--node-name", here, "--kubeconfig", w.Kubeconfig())
	must(t, err)
	if !strings.Contains(string(text), "--to-destination 10.0.9.1:8080") || strings.Contains(string(text), "10.0.9.2") {
		t.Errorf("render:\n%s", text)
	}
	for args, want := range map[string]string{ // all Nodes are read
		"matrix web":              "default/web  location   beijing  guangzhou",
		"analyze --fail-on never": " Nodes)",
		"explain web --all-nodes": "gz-2  location=guangzhou  1 of 2     gz-2         -",
	} {
		text, err = w.node.Run(w.ctx, nil, w.binary, append(strings.Fields(args), "--kubeconfig", w.Kubeconfig())...)
		must(t, err)
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q:\n%s", args, want, text)
		}
	}
}

// testLastEndpoint: the unit's nodes tell, once, when it has no endpoint any more.
func testLastEndpoint(t *testing.T, w *operatedNode) {
	const reason = "UnitLostLastEndpoint"
	if all := w.events(reason); len(all) > 0 {
		t.Errorf("Events before anything was lost: %q", all)
	}
	w.serve("web", "gz-2")
	wait.Until(w.t, "an Event tells of the loss", func() error {
		return w.wantEvent(reason, "Service/web gridproxy@"+here+": ", "unit location=beijing has no usable endpoint")
	})
	w.serve("web", "bj-3", "gz-2")
	wait.Until(w.t, "web is back", func() error { return w.wantRule("10.0.9.1:8080", true) })
	if all := w.events(reason); len(all) != 1 {
		t.Errorf("Events: %q, want one", all)
	}
}

// testMalformed: an Event names a typing mistake, which opens nothing.
func testMalformed(t *testing.T, w *operatedNode) {
	w.annotate("web", "location")
	wait.Until(w.t, "an Event tells of the mistake", func() error {
		return w.wantEvent("MalformedTopology", "Service/web gridproxy@"+here+": ", `annotation topologyKeys is "location"`, "stay in force: location")
	})
	if err := w.wantRule("10.0.9.2:8080", false); err != nil {
		t.Errorf("a mistake opened the Service: %v", err)
	}
	w.annotate("web", `["location"]`)
}

func testMetrics(t *testing.T, w *operatedNode) {
	w.addService("api", "10.96.0.11", "bj-3")
	wait.Until(w.t, "the new Service is measured", func() error {
		return w.wantMetrics("\ngridproxy_closed_services 2\n", "\ngridproxy_node_watches{nodes=\"unit\"} 1\n", "\ngridproxy_node_watches{nodes=\"all\"} 0\n",
			"\ngridproxy_malformed_annotations 0\n", "\ngridproxy_network_programming_duration_seconds_count 1\n",
			"\ngridproxy_endpoints_left_out{reason=\"not in this unit (its Node is not watched)\"} 1\n")
	})
}

func (w *operatedNode) wantMetrics(lines ...string) error {
	page, err := w.node.Get(w.ctx, metrics, "/metrics")
	return errors.Join(err, wait.Contains(string(page.Text), lines...))
}

// testEligible: the health check sends load balancers elsewhere before the node goes; liveness
// is another question.
func testEligible(t *testing.T, w *operatedNode) {
	taint := func(taints ...map[string]string) {
		w.patch("node", here, map[string]any{"spec": map[string]any{"taints": taints}})
	}
	if err := w.wantCode("/healthz", 200); err != nil {
		t.Error(err)
	}
	taint(map[string]string{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"})
	wait.Until(w.t, "/healthz says 503", func() error { return w.wantCode("/healthz", 503) })
	if err := w.wantCode("/livez", 200); err != nil {
		t.Error(err)
	}
	taint()
	wait.Until(w.t, "/healthz says 200 again", func() error { return w.wantCode("/healthz", 200) })

	node, err := w.api.CoreV1().Nodes().Get(w.ctx, here, metav1.GetOptions{})
	must(w.t, err)
	must(w.t, w.api.CoreV1().Nodes().Delete(w.ctx, here, metav1.DeleteOptions{}))
	wait.Until(w.t, "/healthz says 503 for a Node that is gone", func() error { return w.wantCode("/healthz", 503) })
	wait.Until(w.t, "web is refused on an unknown node", func() error { return w.wantRule("10.0.9.1:8080", false) })
	node.ResourceVersion, node.UID = "", ""
	_, err = w.api.CoreV1().Nodes().Create(w.ctx, node, metav1.CreateOptions{})
	must(w.t, err)
	wait.Until(w.t, "web works again", func() error { return w.wantRule("10.0.9.1:8080", true) })
}

// testQuarantine: an Event on the Service reports that the kernel refuses it, and affinity that
// it cannot give too. Others change as before.
func testQuarantine(t *testing.T, w *operatedNode) {
	must(w.t, w.refusal.Refuse(`"default/bad -> `, "-m recent"))
	w.addService("bad", "10.96.0.12", "bj-3")
	wait.Until(w.t, "an Event tells of the quarantine", func() error {
		return w.wantEvent("Quarantined", "Service/bad gridproxy@"+here+": ", "it is refused there at all its addresses", "RULE_APPEND failed")
	})
	w.patch("service", "api", map[string]any{"spec": map[string]any{"sessionAffinity": "ClientIP"}})
	wait.Until(w.t, "an Event tells of the affinity", func() error {
		return w.wantEvent("SessionAffinityIgnored", "Service/api gridproxy@"+here+": ", "xt_recent")
	})
	wait.Until(w.t, "the metrics say so", func() error {
		return w.wantMetrics("\ngridproxy_quarantined_services{ip_family=\"IPv4\"} 1\n", "\ngridproxy_without_session_affinity{ip_family=\"IPv4\"} 1\n")
	})
	for path, code := range map[string]int{"/healthz": 200, "/livez": 200} {
		if err := w.wantCode(path, code); err != nil {
			t.Error(err)
		}
	}
	must(w.t, w.refusal.Refuse())
}

// testAway: without an API server everything stays, and its return is noticed.
func testAway(t *testing.T, w *operatedNode) {
	w.API.Stop()
	wait.Until(w.t, "the outage is logged", func() error {
		return wait.Check(strings.Contains(w.daemon.Log().String(), "the API server does not answer"), "nothing about the API server in the log")
	})
	for path, code := range map[string]int{"/healthz": 200, "/livez": 200, "/readyz": 200} {
		if err := w.wantCode(path, code); err != nil {
			t.Error(err)
		}
	}
	if err := w.wantRule("10.0.9.1:8080", true); err != nil {
		t.Error(err)
	}
	must(w.t, w.API.Start(w.ctx))
	w.serve("web", "gz-2", "bj-3")
	wait.Until(w.t, "a change after the outage takes effect", func() error { return w.wantRule("10.0.9.2:8080", true) })
	select {
	case <-w.daemon.Done():
		t.Errorf("the daemon ended with code %d", w.daemon.ExitCode())
	default:
	}
}
