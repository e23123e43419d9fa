package nodes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"

	"sigs.k8s.io/yaml"
)

// ControllerOptions say how to run one grid-controller. The zero ControllerOptions run it as admin.
type ControllerOptions struct {
	// Binary is the program; "": it is built from this module, once a Cluster.
	Binary string
	// User is whom it authenticates as; "" is admin. The name of a ServiceAccount,
	// system:serviceaccount:NAMESPACE:NAME, has what is bound to that account.
	User string
	// Manifests are files that are applied first, without the workloads in them: its ClusterRole, which
	// must be bound to User in them too.
	Manifests []string
	// Flags come after --kubeconfig and the two bind addresses.
	Flags []string
	// Count counts its requests, which then go through a Relay; nil: they go straight.
	Count *Count
}

// AsShipped are the options of a controller with exactly the rights of deploy/grid-controller.yaml, for
// tests in a folder of integration.
func AsShipped() ControllerOptions {
	return ControllerOptions{
		User:      "system:serviceaccount:gridproxy:grid-controller",
		Manifests: []string{"../../deploy/namespace.yaml", "../../deploy/grid-controller.yaml"},
		Flags:     []string{"--leader-elect-resource-namespace=gridproxy"}, // where its Role lets it hold a Lease
	}
}

// GridController is a running grid-controller.
type GridController struct {
	Healthz, Metrics netip.AddrPort // see Get

	child *apiserver.Child
	relay *apiserver.Relay // nil: it asks the API server directly
	web   http.Client
}

// GridController starts `grid-controller run`, which ends with the test. It may not be ready yet.
func (c *Cluster) GridController(t testing.TB, o ControllerOptions) *GridController {
	t.Helper()
	g, err := c.StartGridController(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// StartGridController is GridController for programs. Close ends it.
func (c *Cluster) StartGridController(ctx context.Context, o ControllerOptions) (_ *GridController, err error) {
	g := &GridController{}
	defer func() {
		if err != nil {
			g.Close()
		}
	}()
	for _, file := range o.Manifests {
		if err := c.applyRights(file); err != nil {
			return nil, err
		}
	}
	name, binary := c.nextController(), o.Binary
	if binary == "" {
		if binary, err = program.Path(ctx, program.GridController); err != nil {
			return nil, err
		}
	}
	if o.Count == nil && isDelayed() && c.Namespace() == nil { // a relay would lead around the link of a namespace
		o.Count = &Count{}
	}
	config, err := c.Counted(o.User, o.Count)
	if err != nil {
		return nil, err
	}
	namespace := c.Namespace()
	if o.Count != nil {
		if g.relay, err = c.NewRelay(config); err != nil {
			return nil, err
		}
		config, namespace = g.relay.Config(), nil // the relay is on the caller's loopback
	}
	kubeconfig, err := apiserver.WriteKubeconfig(c.Dir(), name+".kubeconfig", config)
	if err != nil {
		return nil, err
	}
	ports, err := apiserver.FreePorts(namespace, 2)
	if err != nil {
		return nil, fmt.Errorf("choosing ports for %s: %w", name, err)
	}
	g.Healthz, g.Metrics = ports[0], ports[1]
	g.web.Transport = &http.Transport{DialContext: apiserver.Dialer(namespace), DisableKeepAlives: true}
	g.child, err = apiserver.StartChild(apiserver.Spec{
		Name: name, Path: binary, Dir: c.Dir(), Namespace: namespace,
		Args: append([]string{
			"run", "--kubeconfig=" + kubeconfig,
			"--healthz-bind-address=" + g.Healthz.String(), "--metrics-bind-address=" + g.Metrics.String(),
		}, o.Flags...),
	})
	return g, err
}

// nextController returns a name for the files of one more grid-controller.
func (c *Cluster) nextController() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.controllers++
	return fmt.Sprintf("grid-controller-%d", c.controllers-1)
}

// applyRights applies a manifest without its workloads, which would be Pods of an image that no
// kubelet can run.
func (c *Cluster) applyRights(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the rights of the controller: %w", err)
	}
	var kept []string
	for document := range strings.SplitSeq("\n"+string(content), "\n---") {
		var head struct{ APIVersion string }
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if head.APIVersion != "" && !strings.HasPrefix(head.APIVersion, "apps/") {
			kept = append(kept, document)
		}
	}
	if _, err := c.KubectlIn(c.ctx, strings.NewReader(strings.Join(kept, "\n---")), "apply", "-f", "-"); err != nil {
		return fmt.Errorf("applying the rights of the controller: %w", err)
	}
	return nil
}

// WaitReady waits until /readyz answers 200.
func (g *GridController) WaitReady(t testing.TB) {
	t.Helper()
	err := g.child.WaitFor(wait.Usual.Context(t), func(ctx context.Context) error {
		_, err := g.Get(ctx, g.Healthz, "/readyz")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Get asks one of its servers for a path; any answer but 200 is an error.
func (g *GridController) Get(ctx context.Context, server netip.AddrPort, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server.String()+path, nil)
	if err != nil {
		return "", fmt.Errorf("making a request: %w", err)
	}
	response, err := g.web.Do(r)
	if err != nil {
		return "", fmt.Errorf("asking the controller: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("reading the controller's %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the controller's %s answers %s: %s", path, response.Status, body)
	}
	return string(body), nil
}

// PID is its process id.
func (g *GridController) PID() int { return g.child.PID() }

// Log is what it wrote so far; the text says so where it cannot be read.
func (g *GridController) Log() string {
	content, err := os.ReadFile(g.child.Log())
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// Done is closed when it has ended.
func (g *GridController) Done() <-chan struct{} { return g.child.Done() }

// Stop ends it in good order (SIGTERM), so that it can give up its leadership; after 20 s it is killed.
func (g *GridController) Stop() { g.child.Stop(syscall.SIGTERM, 20*time.Second) }

// Kill ends it as a crash does.
func (g *GridController) Kill() { g.child.Stop(syscall.SIGKILL, 0) }

// Close kills it, and ends what it was started with.
func (g *GridController) Close() {
	if g.child != nil {
		g.Kill()
	}
	if g.relay != nil {
		g.relay.Close()
	}
}
