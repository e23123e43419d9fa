package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tools is a folder of programs that take the place of iptables-restore in PATH. Kernels that
// refuse a rule or hang cannot be had on any machine, so these programs do it, and call the real
// one otherwise.
type tools struct{ dir string }

// The faults of the program in PATH.
const (
	toolFails   = "fail"
	toolHangs   = "hang"
	toolRefuses = "refuse" // rules of the Service default/refused
)

const restoreScript = `#!/bin/sh
case "$(cat %[1]s/%[2]s.fault 2>/dev/null)" in
fail) echo "%[2]s: this test has it fail" >&2; exit 4 ;;
hang) exec sleep 1000 ;;
refuse)
	input=$(mktemp) || exit 4
	trap 'rm -f "$input"' EXIT
	cat >"$input"
	line=$(grep -n 'default/refused' "$input" | grep -v REJECT | head -n 1 | cut -d: -f1)
	if [ -n "$line" ]; then
		echo "%[2]s: line $line failed" >&2
		exit 1
	fi
	%[3]s "$@" <"$input"
	exit ;;
esac
exec %[3]s "$@"
`

func newTools(t *testing.T) *tools {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"iptables-nft-restore", "ip6tables-nft-restore"} {
		script := fmt.Sprintf(restoreScript, dir, name, "/usr/sbin/"+name)
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	}
	return &tools{dir}
}

// set has a program fail in a way from now on; "" has it work.
func (s *soak) set(program, way string) {
	s.t.Helper()
	must(s.t, os.WriteFile(filepath.Join(s.tools.dir, program+".fault"), []byte(way), 0o644))
}

// fault is something that goes wrong for a while. begin returns what ends it.
type fault struct {
	name    string
	begin   func(s *soak) (end func())
	whileIt func(s *soak)
}

func faults() []fault {
	program := func(name, way string) func(*soak) func() {
		return func(s *soak) func() {
			s.set(name, way)
			return func() { s.set(name, "") }
		}
	}
	command := func(name string, args ...string) func(*soak) func() {
		return func(s *soak) func() {
			_, err := s.node.Run(s.ctx, nil, name, args...)
			must(s.t, err)
			return func() {}
		}
	}
	return []fault{
		{name: "no fault", begin: func(*soak) func() { return func() {} }},
		{name: "a jump was removed", begin: command("iptables-nft", "-t", "nat", "-F", "PREROUTING")},
		{name: "the Services were flushed", begin: command("iptables-nft", "-t", "nat", "-F", "KUBE-SERVICES")},
		{name: "iptables-restore failed", begin: program("iptables-nft-restore", toolFails), whileIt: untilLogged("this test has it fail")},
		{name: "ip6tables-restore failed", begin: program("ip6tables-nft-restore", toolFails)},
		{name: "iptables-restore hung and was killed", begin: program("iptables-nft-restore", toolHangs), whileIt: killTools},
		{name: "a native rule made nat unreadable", begin: nativeRule},
		{name: "the kernel refused a Service", begin: refused},
		{name: "the API server was away", begin: apiServerAway},
		{name: "SIGHUP", begin: func(s *soak) func() {
			must(s.t, syscall.Kill(s.daemon.PID(), syscall.SIGHUP))
			return func() {}
		}},
	}
}

func untilLogged(text string) func(*soak) {
	return func(s *soak) {
		wait.Until(s.t, "the log says "+text, func() error { return wait.Check(strings.Contains(s.daemon.Log().String(), text), "it does not") })
	}
}

// killTools waits for a program of the daemon's that hangs, and kills it, when the next one works
// again: its own time limit would take minutes.
func killTools(s *soak) {
	wait.Until(s.t, "iptables-restore hangs", func() error {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", s.daemon.PID()))
		if err != nil {
			return err
		}
		all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.daemon.PID()))
		must(s.t, err)
		for _, file := range all {
			more, _ := os.ReadFile(file) // the thread may have ended
			text = append(append(text, ' '), more...)
		}
		for _, field := range strings.Fields(string(text)) {
			var pid int
			if _, err := fmt.Sscan(field, &pid); err != nil {
				return err
			}
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // it may have ended
			if strings.TrimSpace(string(name)) == "sleep" {
				s.set("iptables-nft-restore", "")
				return syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		return fmt.Errorf("nothing hangs")
	})
}

// nativeRule puts a rule into ip nat that iptables-nft cannot print.
func nativeRule(s *soak) func() {
	_, err := s.node.Run(s.ctx, nil, "nft", "add", "chain", "ip", "nat", "native", "{ type nat hook postrouting priority 200 ; }")
	must(s.t, err)
	_, err = s.node.Run(s.ctx, nil, "nft", "add", "rule", "ip", "nat", "native", "oifname", "soak0", "masquerade")
	must(s.t, err)
	return func() {
		_, err := s.node.Run(s.ctx, nil, "nft", "flush", "chain", "ip", "nat", "native")
		must(s.t, err)
		_, err = s.node.Run(s.ctx, nil, "nft", "delete", "chain", "ip", "nat", "native")
		must(s.t, err)
	}
}

// refused makes a Service whose rules the program in PATH refuses.
func refused(s *soak) func() {
	s.set("iptables-nft-restore", toolRefuses)
	s.addService("refused", "10.96.2.1", "bj-3")
	return func() {
		s.set("iptables-nft-restore", "")
		s.removeService("refused")
	}
}

func (s *soak) removeService(name string) {
	s.t.Helper()
	must(s.t, s.api.CoreV1().Services("default").Delete(s.ctx, name, metav1.DeleteOptions{}))
	must(s.t, s.api.DiscoveryV1().EndpointSlices("default").Delete(s.ctx, name, metav1.DeleteOptions{}))
}

// apiServerAway ends when the daemon hears of Services and EndpointSlices again: after several
// outages in two minutes client-go waits for up to a minute before it asks for one of them.
func apiServerAway(s *soak) func() {
	s.API.Stop()
	must(s.t, wait.Usual.Do(s.ctx, s.API.Start))
	return func() {
		s.addService("back", "10.96.2.2", "bj-3")
		wait.Until(s.t, "a new Service is served", func() error { return s.wantRule("default/back ", true) })
		s.removeService("back")
	}
}

// hostile are objects that a tenant may make, by what they are.
func hostile() map[string]func(*soak) {
	annotated := func(key, value string) func(*soak) {
		return func(s *soak) {
			s.hostileService(func(o *corev1.Service) { o.Annotations[key] = value })
		}
	}
	return map[string]func(*soak){
		"an annotation that changes": func(s *soak) {
			annotated("note", "0")(s)
			for i := range 20 {
				text := strings.Repeat(string(rune('a'+i)), 200_000)
				s.patch("service", "hostile", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"note": text}}})
			}
		},
		"5,000 topology keys":         annotated("topologyKeys", `["k`+strings.Repeat(`","k`, 4999)+`"]`),
		"a huge malformed annotation": annotated("topologyKeys", strings.Repeat("x\n", 100_000)),
		"another's address": func(s *soak) {
			s.hostileService(func(o *corev1.Service) { o.Spec.ExternalIPs = []string{"10.96.1.1", "10.96.0.1"} })
		},
		"source ranges": func(s *soak) {
			s.hostileService(func(o *corev1.Service) {
				o.Spec.Type, o.Spec.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, []string{"203.0.113.0/25"}
			})
		},
		"1,000 ports": manyPorts,
	}
}

// manyPorts is a Service with as many ports as a tenant likes, each with endpoints.
func manyPorts(s *soak) {
	ports, slicePorts := []corev1.ServicePort{}, []discoveryv1.EndpointPort{}
	for i := range int32(1000) {
		name := fmt.Sprintf("p%d", i)
		port := 1 + i
		ports = append(ports, corev1.ServicePort{Name: name, Port: port})
		slicePorts = append(slicePorts, discoveryv1.EndpointPort{Name: &name, Port: &port})
	}
	s.hostileService(func(o *corev1.Service) { o.Spec.Ports = ports })
	for i := 0; i < len(slicePorts); i += 100 { // the API server's limit for a slice
		_, err := s.api.DiscoveryV1().EndpointSlices("default").Create(s.ctx, &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("hostile-%d", i), Labels: map[string]string{"soak": "hostile", discoveryv1.LabelServiceName: "hostile"},
			},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: slicePorts[i : i+100],
			Endpoints: s.endpoints("bj-3", "bj-3", "bj-3", "gz-2"),
		}, metav1.CreateOptions{})
		must(s.t, err)
	}
}
