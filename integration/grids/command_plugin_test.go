package grids

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"
)

// plugin is kubectl with the plugin kubectl-grid in its PATH.
type plugin struct {
	*terminal
	path string
}

func newPlugin(w *terminal) plugin {
	w.Helper()
	return plugin{w, filepath.Dir(program.ForTest(w, program.KubectlGrid)) + ":" + os.Getenv("PATH")}
}

func (p plugin) grid(code int, args ...string) (out, problems string) {
	p.Helper()
	out, problems, got := p.ask(args...)
	if got != code {
		p.Fatalf("%v: exit code %d, want %d\n%s%s", args, got, code, out, problems)
	}
	return out, problems
}

func (p plugin) ask(args ...string) (out, problems string, code int) {
	p.Helper()
	args = append(append([]string{"grid"}, args...), "--kubeconfig", p.cluster.Kubeconfig())
	cmd := exec.CommandContext(p.Context(), p.cluster.Tools().Path("kubectl"), args...)
	cmd.Env = append(os.Environ(), "PATH="+p.path)
	return p.outcome(cmd)
}

// daemonAt serves /healthz of a healthy daemon on an address of this machine, since an API server's
// node proxy refuses loopback.
func daemonAt(t *testing.T) (host, port string) {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			host = n.IP.String()
		}
	}
	need.That(t, host != "", "an IPv4 address beside those of loopback")
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	must(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"lastUpdated":"2026-01-02T12:00:00Z","currentTime":"2026-01-02T12:00:00Z","nodeEligible":true,"healthy":true}`)
	})}}
	server.Start()
	t.Cleanup(server.Close)
	return host, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// TestKubectlGrid: kubectl finds the plugin, which asks through the API server's node proxy, and
// reads Grids as the controller writes them. Without the right to nodes/proxy nothing is healthy;
// the right to one port of a Node, as docs/security.md has it, is enough, and leaves out the
// kubelet.
func TestKubectlGrid(t *testing.T) {
	p := newPlugin(twoUnits(t))
	p.call("", "apply", "-f", stateless)
	p.control(func() error {
		out, _ := p.grid(0, "units", "deploymentgrid-demo")
		return errors.Join(wait.Contains(out, "deploymentgrid-demo-guangzhou"), wait.Contains(p.call("", "get", "services", "-o", "name"), "servicegrid-demo-svc"))
	})
	out, _ := p.grid(0, "units", "deploymentgrid-demo")
	p.equal("units", "beijing deploymentgrid-demo-beijing\nguangzhou deploymentgrid-demo-guangzhou\n",
		regexp.MustCompile(`(?m)^(\S+) .* (deploymentgrid-demo-\S+) .*$`).ReplaceAllString(grep(out, `(?m)^(beijing|guangzhou).*\n`), "$1 $2"))

	host, port := daemonAt(t)
	p.call("", "patch", "node", "bj-1", "--subresource=status", "-p", fmt.Sprintf(`{"status": {"addresses": [{"type": "InternalIP", "address": %q}]}}`, host))
	status := []string{"status", "--healthz-port", port}
	out, problems := p.grid(1, status...)
	if err := errors.Join(wait.Contains(out, "gz-1  guangzhou  unknown "), wait.Contains(out, "bj-1  beijing    healthy "), wait.Contains(problems, "error: Node gz-1: the daemon is unknown: the API server cannot ask: "),
		wait.Contains(out, "DeploymentGrid default/deploymentgrid-demo  location")); err != nil {
		t.Error(err)
	}
	p.grid(0, append(status, "bj-1", "-n", "kube-system")...)

	p.call("", "create", "clusterrole", "looks", "--verb=get,list", "--resource=nodes,services,deploymentgrids.superedge.io,statefulsetgrids.superedge.io")
	p.call("", "create", "clusterrolebinding", "looks", "--clusterrole=looks", "--user=jane")
	wait.Until(p, "jane may list Nodes, and sees that the daemon is unknown", func() error {
		out, problems, code := p.ask(append(status, "--as", "jane", "bj-1", "-n", "kube-system")...)
		if code != 1 { // the API server does not know the binding at once
			return fmt.Errorf("exit code %d, want 1: %s", code, problems)
		}
		return errors.Join(wait.Contains(out, "bj-1  beijing  unknown"), wait.Contains(problems, "asking needs the right to get nodes/proxy"))
	})

	p.call("", "create", "clusterrole", "asks", "--verb=get", "--resource=nodes/proxy", "--resource-name=bj-1:"+port)
	p.call("", "create", "clusterrolebinding", "asks", "--clusterrole=asks", "--user=jane")
	wait.Until(p, "jane may ask this daemon", func() error {
		out, _, _ := p.ask(append(status, "--as", "jane", "bj-1", "-n", "kube-system")...)
		return wait.Contains(out, "bj-1  beijing  healthy")
	})
	answer, err := p.cluster.Kubectl("--as", "jane", "get", "--raw", "/api/v1/nodes/bj-1/proxy/pods")
	if err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("jane asks the kubelet: %v\n%s", err, answer)
	}

	out, _ = p.grid(0, "matrix", "servicegrid-demo-svc")
	if err := wait.Contains(out, "default/servicegrid-demo-svc  location   refused  refused"); err != nil {
		t.Error(err)
	}
}
