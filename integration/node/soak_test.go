package node

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// soakNames are the Services that change at random, and steady is one that changes in each round
// for certain.
const (
	soakNames = 20
	steady    = "steady"
)

// setting is a duration from the environment, or else what it is without.
func setting(t *testing.T, name string, otherwise time.Duration) time.Duration {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s=%s: write a duration such as 5m: %v", name, text, err)
	}
	return d
}

// TestSoak has a daemon work through random changes, hostile objects and faults, round after round.
// After each fault the rules must be what is desired, and what the daemon holds must not grow.
// GRIDPROXY_SOAK is how long it goes on; without, it is once through every fault. Reboots without
// API server follow, for a third of that time, or one. GRIDPROXY_SOAK_QUIET is how long rules may
// differ once a fault has ended; set it where nothing else keeps the machine busy.
func TestSoak(t *testing.T) {
	length := setting(t, "GRIDPROXY_SOAK", 0)
	w := newOperatedNode(t)
	w.ctx = t.Context()
	tools := newTools(t)
	w.program = w.binary // the programs of tools take the place of those of w.refusal
	w.node.Env = append(w.node.Env, "PATH="+tools.dir+":"+os.Getenv("PATH"))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := &soak{operatedNode: w, tools: tools, random: rand.New(rand.NewPCG(seed, 1)), quiet: setting(t, "GRIDPROXY_SOAK_QUIET", waitTimeout), served: true}
	w.addService(steady, "10.96.1.100", "bj-3", "gz-2")
	for i := range soakNames {
		w.addService(fmt.Sprintf("web-%d", i), fmt.Sprintf("10.96.1.%d", i+1), "bj-3", "gz-2")
	}
	w.start("--verify-period", "2s")

	var seen []usage
	// real time: GRIDPROXY_SOAK is how long it runs
	for began := time.Now(); len(seen) < 1 || time.Since(began) < length; {
		for _, f := range faults() {
			s.round(t, f)
		}
		for name, make := range hostile() {
			s.attack(t, name, make)
		}
		seen = append(seen, s.usage(t))
		t.Logf("round %d: %s; rules right again within %s", len(seen), seen[len(seen)-1], s.longest.Round(time.Second))
	}
	if err := flat(seen); err != nil {
		t.Errorf("what the daemon holds grows: %v", err)
	}
	s.cutOff(t, length/3)
}

type soak struct {
	*operatedNode
	tools   *tools
	random  *rand.Rand
	quiet   time.Duration // how long rules may differ after a fault
	longest time.Duration // that they did, or a little less
	served  bool          // steady has an endpoint
}

// round changes Services while a fault lasts, and waits until the rules are right once it has
// ended.
func (s *soak) round(t *testing.T, f fault) {
	t.Helper()
	end := f.begin(s)
	for range 10 {
		s.change()
	}
	s.changeSteady()
	if f.whileIt != nil {
		f.whileIt(s)
	}
	end()
	s.wantClean(t, f.name)
}

// attack makes an object that only harms, changes others beside it, and removes it.
func (s *soak) attack(t *testing.T, name string, make func(*soak)) {
	t.Helper()
	make(s)
	for range 3 {
		s.change()
	}
	s.wantClean(t, name)
	s.removeHostile()
	s.wantClean(t, name+", removed")
}

func (s *soak) change() {
	name := fmt.Sprintf("web-%d", s.random.IntN(soakNames))
	switch s.random.IntN(4) {
	case 0:
		s.serve(name, "gz-2")
	case 1:
		s.serve(name, "bj-3", "gz-2")
	case 2:
		s.annotate(name, `["location"]`)
	default:
		s.serve(name, "bj-3")
	}
}

// changeSteady changes rules for certain: a random change may be none to this node, and there are
// faults that show only when rules are written.
func (s *soak) changeSteady() {
	s.served = !s.served
	if s.served {
		s.serve(steady, "bj-3")
	} else {
		s.serve(steady, "gz-2")
	}
}

// wantClean waits until diff finds nothing.
func (s *soak) wantClean(t *testing.T, after string) {
	t.Helper()
	began := time.Now()
	text, err := s.node.Run(s.ctx, nil, s.binary, "diff", "--wait", s.quiet.String(), "--node-name", here, "--kubeconfig", s.Kubeconfig(),
		"--iptables-variant", "nft")
	if err != nil {
		t.Fatalf("%v after %s the rules differ: %v\n%s", s.quiet, after, err, text)
	}
	s.longest = max(s.longest, time.Since(began))
	if page, err := s.node.Get(s.ctx, healthz, "/livez"); err != nil || page.Code != 200 {
		t.Errorf("after %s, /livez: %d %s %v", after, page.Code, page.Text, err)
	}
}

func (s *soak) removeHostile() {
	s.t.Helper()
	hostile := metav1.ListOptions{LabelSelector: "soak=hostile"}
	services, err := s.api.CoreV1().Services("default").List(s.ctx, hostile)
	must(s.t, err)
	for _, o := range services.Items {
		must(s.t, s.api.CoreV1().Services("default").Delete(s.ctx, o.Name, metav1.DeleteOptions{}))
	}
	must(s.t, s.api.DiscoveryV1().EndpointSlices("default").DeleteCollection(s.ctx, metav1.DeleteOptions{}, hostile))
}

// hostileService makes a Service that removeHostile removes.
func (s *soak) hostileService(change func(*corev1.Service)) {
	s.t.Helper()
	o := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "hostile", Labels: map[string]string{"soak": "hostile"}, Annotations: map[string]string{}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	change(o)
	_, err := s.api.CoreV1().Services("default").Create(s.ctx, o, metav1.CreateOptions{})
	must(s.t, err)
}
