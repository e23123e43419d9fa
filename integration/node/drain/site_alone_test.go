package drain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
)

// siteAlone is a site, the unit of bj-1 and bj-3. It can be cut off from the API server and
// rebooted.
type siteAlone struct {
	*world
	api        *need.FakeAPI
	kubeconfig string
	machines   []*siteMachine
}

// siteMachine is a machine of the site, with a daemon that saves its state.
type siteMachine struct {
	*netns.Node
	stateDir string
	daemon   *netns.Process
}

// asked is how often each machine of the site asks.
const asked = 200

// The Services: lasting stays, and passing is deleted while the site is cut off.
const (
	lasting = plain
	passing = sticky
)

// TestSiteAlone cuts a site off and reboots its machines, also with a clock that is wrong: in IPVS
// mode every request inside the unit is answered from the saved state. Without one none is, and
// kube-proxy's figure is printed beside.
func TestSiteAlone(t *testing.T) {
	needIPVS(t)
	s := newSiteAlone(t)
	s.startAll()
	wait.Until(t, "all states are saved", s.saved)
	s.wantAnswers("before the cut")
	s.cut()
	s.wantAnswers("cut off")
	s.reboot()
	s.withoutState()
	for _, clock := range []struct{ name, start string }{
		{"at boot in time", ""}, {"in 1970", "1970-01-02T00:00:00Z"}, {"a year back", time.Now().AddDate(-1, 0, 0).Format(time.RFC3339)},
	} {
		s.reboot()
		s.rebootedAt(clock.name, clock.start)
	}
	s.Must(s.api.Remove(s.Services[1], s.Slices[2], s.Slices[3]))
	s.giveLinkBack()
	wait.Until(t, "the daemons follow the API server", func() error { return s.gone(netns.VIP(netns.IPv4, passing)) })
	s.wantAnswers("the link is back")
	s.reboot()
	s.besideKubeProxy()
}

func newSiteAlone(t *testing.T) *siteAlone {
	t.Helper()
	s := &siteAlone{world: newWorld(t, "nft")}
	for _, last := range []byte{lasting, passing} {
		s.Serve(newService(last), s.Endpoint(here), s.Endpoint("bj-3"), s.Endpoint("gz-2"))
	}
	s.api = s.newAPI()
	s.kubeconfig = apiserver.KubeconfigForTest(s.t, &rest.Config{Host: s.api.URL()})
	for _, name := range []string{here, "bj-3"} {
		s.machines = append(s.machines, &siteMachine{Node: s.Lab.Node(name), stateDir: filepath.Join(t.TempDir(), "state")})
	}
	return s
}

func (s *siteAlone) daemonOf(m *siteMachine, stateDir string) {
	s.t.Helper()
	var err error
	m.daemon, err = m.Start(s.Program, "run", "--node-name", m.Name, "--kubeconfig", s.kubeconfig, "--proxy-mode", "ipvs", "--iptables-variant", s.Variant,
		"--cluster-cidr", netns.ClusterCIDRs(), "--conntrack-max-per-core", "0", netns.NoStatusSocket, "--state-dir", stateDir)
	s.Must(err)
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("the daemon of %s said:\n%s", m.Name, netns.Tail(m.daemon.Log().String()))
		}
	})
}

func (s *siteAlone) startAll() {
	s.t.Helper()
	for _, m := range s.machines {
		s.daemonOf(m, m.stateDir)
	}
	for _, m := range s.machines {
		wait.Until(s.t, m.Name+" is ready", func() error { return m.Readyz(s.t.Context()) })
	}
}

func (s *siteAlone) saved() error {
	for _, m := range s.machines {
		if _, err := os.Stat(filepath.Join(m.stateDir, "state")); err != nil {
			return err
		}
	}
	return nil
}

// linkRules refuse connections of the site to the API server; nothing but resets reaches it.
const linkRules = `table ip cut {
	chain input { type filter hook input priority 0; ip saddr { %[1]s } meta l4proto tcp reject with tcp reset; }
	chain output { type filter hook output priority 0; ip daddr { %[1]s } tcp flags & rst == 0 drop; }
}`

// cut takes the site's link to the API server away.
func (s *siteAlone) cut() {
	s.t.Helper()
	var addrs []string
	for _, m := range s.machines {
		addrs = append(addrs, m.Addr(netns.IPv4).String())
	}
	_, err := s.Outside.Run(s.t.Context(), strings.NewReader(fmt.Sprintf(linkRules, strings.Join(addrs, ", "))), "nft", "-f", "-")
	s.Must(err)
}

func (s *siteAlone) giveLinkBack() {
	s.t.Helper()
	_, err := s.Outside.Run(s.t.Context(), nil, "nft", "delete", "table", "ip", "cut")
	s.Must(err)
}

// reboot kills the daemons and empties what a machine does not have after a reboot.
func (s *siteAlone) reboot() {
	s.t.Helper()
	for _, m := range s.machines {
		m.daemon.Kill()
		for _, command := range [][]string{
			{"nft", "flush", "ruleset"}, {"ipvsadm", "-C"}, {"ipset", "destroy"}, {"conntrack", "-F"}, {"ip", "link", "delete", "kube-ipvs0"},
		} {
			_, err := m.Run(s.t.Context(), nil, command[0], command[1:]...)
			if err != nil && command[0] != "ip" { // the link may not exist
				s.t.Fatal(err)
			}
		}
	}
}

// ask has the client on a machine ask the Service so many times, and counts the answers by
// Node. The error is the last one.
func (s *siteAlone) ask(m *siteMachine, times int, within time.Duration) (answers map[string]int, failed error) {
	const atOnce = 4
	answers = map[string]int{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for range atOnce {
		asking.Go(func() {
			for range times / atOnce {
				ctx, cancel := context.WithTimeout(s.t.Context(), within)
				answer, err := s.Client(m.Name).Fetch(ctx, netns.VIP(netns.IPv4, lasting))
				cancel()
				mu.Lock()
				if err == nil {
					answers[answer.Node]++
				} else {
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	return answers, failed
}

// wantAnswers wants every request of each machine answered from the unit.
func (s *siteAlone) wantAnswers(when string) {
	s.t.Helper()
	for _, m := range s.machines {
		answers, err := s.ask(m, asked, traffic.AloneTimeout)
		s.t.Logf("%s, %s: %d of %d requests are answered from the unit", when, m.Name, answers[here]+answers["bj-3"], asked)
		if answers[here]+answers["bj-3"] != asked || answers["gz-2"] > 0 {
			s.t.Errorf("%s, %s is answered by %v: %v", when, m.Name, answers, err)
		}
	}
}

// shortly is how long a request may take that is not expected to be answered.
const shortly = time.Second

// withoutState: a daemon with an empty folder serves nothing while it is cut off.
func (s *siteAlone) withoutState() {
	s.t.Helper()
	for _, m := range s.machines {
		s.daemonOf(m, s.t.TempDir())
	}
	for _, m := range s.machines {
		wait.Until(s.t, "the API server is missed on "+m.Name, func() error {
			return wait.Check(m.daemon.Log().Contains("the API server does not answer"), "the daemon said %s", m.daemon.Log())
		})
		answers, _ := s.ask(m, asked, shortly)
		s.t.Logf("after a reboot without saved state, %s: %v of %d requests are answered", m.Name, answers, asked)
		if len(answers) > 0 {
			s.t.Errorf("without saved state, %s is answered by %v", m.Name, answers)
		}
	}
}

// rebootedAt starts the daemons with the clock at a time, and sets it right again; "" leaves it.
func (s *siteAlone) rebootedAt(name, start string) {
	s.t.Helper()
	if start != "" {
		at, err := time.Parse(time.RFC3339, start)
		s.Must(err)
		defer setClock(s.t, at)()
	}
	begin := time.Now()
	for _, m := range s.machines {
		s.daemonOf(m, m.stateDir)
	}
	for _, m := range s.machines {
		wait.Until(s.t, "the first answer on "+m.Name, func() error {
			ctx, cancel := context.WithTimeout(s.t.Context(), shortly)
			defer cancel()
			_, err := s.Client(m.Name).Fetch(ctx, netns.VIP(netns.IPv4, lasting))
			return err
		})
		s.t.Logf("after a reboot without API server, clock %s, %s: the first answer after %s", name, m.Name, time.Since(begin).Round(time.Millisecond))
	}
	s.wantAnswers("rebooted without API server, clock " + name)
	for _, m := range s.machines {
		s.saysDisk(m)
	}
}

// negative is a duration below zero, or a time that was never set.
var negative = regexp.MustCompile(`(age=|, )-[0-9]|0001-01-01`)

// saysDisk wants the origin of the state in the log and on /readyz, and no nonsense about its age.
func (s *siteAlone) saysDisk(m *siteMachine) {
	s.t.Helper()
	var page netns.Page
	wait.Until(s.t, m.Name+" is ready", func() (err error) {
		page, err = m.Get(s.t.Context(), netip.MustParseAddrPort("127.0.0.1:10256"), "/readyz?verbose")
		return errors.Join(err, wait.Check(page.Code == http.StatusOK, "/readyz says %d: %s", page.Code, page.Text))
	})
	if !strings.Contains(string(page.Text), "in force: the state saved on disk at ") {
		s.t.Errorf("/readyz of %s says %s", m.Name, page.Text)
	}
	log := m.daemon.Log().String()
	if n := strings.Count(log, "the saved state is in force until then"); n != 1 {
		s.t.Errorf("%s says %d times that the saved state is in force:\n%s", m.Name, n, netns.Tail(log))
	}
	for line := range strings.Lines(log + string(page.Text)) {
		if negative.MatchString(line) || strings.Contains(line, "level=ERROR") {
			s.t.Errorf("%s says %s", m.Name, line)
		}
		if strings.Contains(line, "saved state is in force") || strings.HasPrefix(line, "in force") {
			s.t.Logf("%s says %s", m.Name, strings.TrimSpace(line))
		}
	}
}

// setClock sets the clock of the virtual machine, and returns what sets it right again.
func setClock(t *testing.T, to time.Time) (back func()) {
	t.Helper()
	if os.Getenv("GRIDPROXY_GUEST") == "" {
		t.Skip("the clock is set in a virtual machine only")
	}
	set := func(to time.Time) {
		at := unix.NsecToTimespec(to.UnixNano())
		if err := unix.ClockSettime(unix.CLOCK_REALTIME, &at); err != nil {
			t.Fatalf("setting the clock to %s: %v", to, err)
		}
	}
	right, begin := time.Now(), time.Now() // whose difference is of the monotonic clock
	set(to)
	return func() { set(right.Add(time.Since(begin)).Round(0)) }
}

// gone says whether no virtual server has an address.
func (s *siteAlone) gone(server netip.AddrPort) error {
	for _, m := range s.machines {
		out, err := m.Run(s.t.Context(), nil, "ipvsadm", "-Ln")
		if err == nil && strings.Contains(string(out), server.String()) {
			err = fmt.Errorf("%s has %s still", m.Name, server)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// besideKubeProxy does the same with kube-proxy on one machine, and prints its figures.
func (s *siteAlone) besideKubeProxy() {
	s.t.Helper()
	m := s.machines[0]
	print := func(when string, within time.Duration) {
		answers, _ := s.ask(m, asked, within)
		s.t.Logf("kube-proxy, %s: %s is answered %v of %d times", when, m.Name, answers, asked)
	}
	k := s.newKubeProxy(s.api)
	s.Must(k.WaitFor(wait.Usual.Context(s.t), func(context.Context) error {
		const several = 8
		answers, err := s.ask(m, several, shortly)
		return wait.Check(answers[here]+answers["bj-3"]+answers["gz-2"] == several, "kube-proxy answers %v of %d requests: %v", answers, several, err)
	}))
	print("connected", shortly)
	s.cut()
	print("cut off", shortly)
	k.Stop(syscall.SIGKILL, time.Minute)
	s.reboot()
	k = s.newKubeProxy(s.api)
	wait.Until(s.t, "kube-proxy asks the API server", func() error {
		log, err := os.ReadFile(k.Log())
		return errors.Join(err, wait.Check(strings.Contains(string(log), "connection refused"), "it said %s", netns.Tail(string(log))))
	})
	print("rebooted while cut off", shortly)
}
