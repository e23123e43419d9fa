package cluster

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/machines"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"
)

// sitesNodeGrace is after how long without a word from its kubelet the cloud says that a Node, and
// all of its Pods, are not ready. Kubernetes' own 50 s would only make the test longer.
const sitesNodeGrace = 30 * time.Second

// remoteSite is a unit of two machines. A program on each of them serves its Services. gridproxy is
// a static Pod, and kube-proxy is started as a systemd unit would start it: as a Pod of a
// DaemonSet, it would not be there after a reboot.
type remoteSite struct {
	unit     string
	proxy    string                      // what serves it: ours or theirs
	reboots  string                      // the machine that is rebooted
	stays    string                      // the one that is not
	programs map[string]*apiserver.Child // theirs, by machine

	mu sync.Mutex // of programs
}

// What serves a site.
const (
	ours   = "gridproxy"
	theirs = "kube-proxy"
)

func (s *remoteSite) machines() []string { return []string{s.reboots, s.stays} }

func (s *remoteSite) service(name string) string { return name + "-" + s.unit }

// siteCluster is a cluster of two sites, one for each proxy, and a Node in the cloud, without which
// the cloud would believe that it is itself cut off, and evict nothing.
type siteCluster struct {
	*machines.Cluster
	t        *testing.T
	operator operator
	binary   string // gridproxy outside of its image
	config   string // of kube-proxy
	sites    []*remoteSite
	vips     map[string]netip.Addr // of Services, by name
	figures  *figures

	began, returned time.Time // the last cut
	onReturn        func()    // called when the link has returned
}

func newSiteCluster(t *testing.T) *siteCluster {
	t.Helper()
	w := &siteCluster{t: t, vips: map[string]netip.Addr{}, figures: newFigures(), onReturn: func() {}}
	var specs []machines.Spec
	for _, s := range []*remoteSite{
		{unit: "beijing", proxy: ours, reboots: "bj-1", stays: "bj-2"},
		{unit: "guangzhou", proxy: theirs, reboots: "gz-1", stays: "gz-2"},
	} {
		s.programs = map[string]*apiserver.Child{}
		w.sites = append(w.sites, s)
		for _, name := range s.machines() {
			specs = append(specs, machines.Spec{Name: name, Labels: map[string]string{
				"location": s.unit, "topology.kubernetes.io/zone": s.unit, "site": "yes",
			}})
		}
	}
	w.Cluster = machines.ForTest(t, machines.Options{
		Machines: specs, NodeGrace: sitesNodeGrace, ControllerManager: []string{"--node-eviction-rate=10"},
		Images: []machines.Image{machines.ImageForTest(t, machines.Gridproxy)},
	})
	w.operator = w.newOperator()
	w.binary = program.ForTest(t, program.Gridproxy)
	w.AddNode(t, "cloud", map[string]string{"location": "cloud", "topology.kubernetes.io/zone": "cloud"})
	w.configure()
	for _, s := range w.sites {
		if s.proxy == ours {
			w.install(s)
			continue
		}
		for _, name := range s.machines() {
			must(w.t, w.start(s, name))
		}
	}
	w.serve()
	w.moveNodes(w.sites[0])
	return w
}

func (w *siteCluster) configure() {
	w.t.Helper()
	dir := w.t.TempDir()
	user, err := w.User(w.API.Addr, "system:kube-proxy")
	must(w.t, err)
	kubeconfig, err := apiserver.WriteKubeconfig(dir, "kubeconfig", user)
	must(w.t, err)
	text, err := apiserver.KubeProxy{Mode: "iptables", ClusterCIDRs: machines.ClusterCIDRs}.Config(kubeconfig)
	must(w.t, err)
	w.config = filepath.Join(dir, "kube-proxy.yaml")
	must(w.t, os.WriteFile(w.config, text, 0o600))
}

func (w *siteCluster) start(s *remoteSite, machine string) error {
	child, err := w.Machine(machine).Start(s.proxy, w.Tools().Path("kube-proxy"), "--config="+w.config, "--hostname-override="+machine, "--v=2")
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.programs[machine] = child
	return nil
}

// kill kills a site's proxy on a machine, as kill -9 does. It returns the process that was killed,
// of ours by the machine's numbers.
func (w *siteCluster) kill(s *remoteSite, machine string) (int, error) {
	if s.proxy == ours {
		pid, err := w.daemon(machine)
		if err == nil {
			_, err = w.Machine(machine).Run(w.t.Context(), nil, "sh", "-c", fmt.Sprintf("kill -KILL %d", pid))
		}
		return pid, err
	}
	s.mu.Lock()
	child := s.programs[machine]
	s.mu.Unlock()
	if err := syscall.Kill(-child.PID(), syscall.SIGKILL); err != nil { // nsenter and its child
		return 0, fmt.Errorf("killing %s on %s: %w", s.proxy, machine, err)
	}
	<-child.Done()
	return child.PID(), nil
}

// each does something for both sites, at the same time, and ends the test if it fails.
func (w *siteCluster) each(do func(*remoteSite) error) {
	w.t.Helper()
	must(w.t, wait.Each(w.sites, func(s *remoteSite) error {
		if err := do(s); err != nil {
			return fmt.Errorf("site %s of %s: %w", s.unit, s.proxy, err)
		}
		return nil
	}))
}

// serve makes the Pods and Services, and waits until both sites are right.
func (w *siteCluster) serve() {
	w.t.Helper()
	web, err := os.ReadFile("testdata/site_alone_web.yaml")
	must(w.t, err)
	text, err := os.ReadFile("testdata/site_alone.yaml")
	must(w.t, err)
	manifests := []string{string(web)}
	for _, s := range w.sites {
		manifests = append(manifests, strings.NewReplacer("UNIT", s.unit, "STAYS", s.stays).Replace(string(text)))
	}
	w.Apply(w.t, strings.Join(manifests, "---\n"))
	w.readVIPs()
	w.each(func(s *remoteSite) error { return w.right(w.t.Context(), s) })
}

// cutOff takes the uplink of both sites away; rejoin gives it back.
func (w *siteCluster) cutOff() {
	w.t.Helper()
	w.began = time.Now()
	w.each(func(s *remoteSite) error { return w.CutOff(w.Machine(s.reboots), w.Machine(s.stays)) })
}

func (w *siteCluster) rejoin() {
	w.t.Helper()
	w.each(func(s *remoteSite) error { return w.Rejoin(w.Machine(s.reboots), w.Machine(s.stays)) })
	w.returned = time.Now()
	w.onReturn()
}

// until waits for a moment, which is part of what is tested.
func until(t *testing.T, moment time.Time) {
	t.Helper()
	select {
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	// real time: the moment is part of what is tested
	case <-time.After(time.Until(moment)):
	}
}
