package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
)

// The modules of Flux: of the controller that applies, and of the types of sources that it reads.
// The CRDs of these types are in the module of the controller of sources, which has the version of
// the types.
const (
	fluxApplier = "github.com/fluxcd/kustomize-controller"
	fluxSources = "github.com/fluxcd/source-controller"

	fluxVersions = "-modfile=flux.mod"
)

// Flux is a folder that holds Flux's kustomize-controller and the CRDs of all that it reads.
type Flux struct{ dir string }

// EnsureFlux is Ensure for kustomize-controller, in the version that integration/tools/deploy
// names.
func EnsureFlux(ctx context.Context, progress io.Writer) (Flux, error) {
	dir, err := build{
		what:   "Flux's kustomize-controller once (about 4 minutes on two cores, 1800 packages)",
		module: "tools/deploy", files: []string{"flux.mod", "flux.sum"}, flags: []string{fluxVersions, "-trimpath", "-ldflags", "-s -w"},
		targets: []target{{name: "kustomize-controller", pkg: fluxApplier}},
		extra:   copyFluxCRDs,
	}.ensure(ctx, progress)
	if err != nil {
		return Flux{}, fmt.Errorf("building Flux's kustomize-controller: %w", err)
	}
	return Flux{dir}, nil
}

// CRDs is the folder of the definitions of Kustomizations and of their sources.
func (f Flux) CRDs() string { return filepath.Join(f.dir, "crds") }

// Engine is a running kustomize-controller.
type Engine struct {
	*Child
	Metrics netip.AddrPort // HTTP, in the Namespace of the Cluster
}

// StartFlux starts kustomize-controller as a user, with extra flags last, and returns when it is
// ready. The definitions of what it reads must be served. It ends with Close.
func (c *Cluster) StartFlux(ctx context.Context, f Flux, user *rest.Config, extra ...string) (*Engine, error) {
	const name = "kustomize-controller"
	o := c.options
	config, err := WriteKubeconfig(o.Dir, name+".kubeconfig", user)
	if err != nil {
		return nil, err
	}
	ports, err := FreePorts(o.Namespace, 2)
	if err != nil {
		return nil, fmt.Errorf("choosing ports for %s: %w", name, err)
	}
	metrics, health := ports[0], ports[1]
	child, err := StartChild(Spec{
		Name: name, Path: filepath.Join(f.dir, name), Dir: o.Dir, Namespace: o.Namespace,
		Env: []string{"KUBECONFIG=" + config, "RUNTIME_NAMESPACE=flux-system"},
		Args: append([]string{
			"--feature-gates=ExternalArtifact=true", "--watch-all-namespaces=true", "--enable-leader-election=false",
			"--metrics-addr=" + metrics.String(), "--health-addr=" + health.String(),
		}, extra...),
	})
	if err != nil {
		return nil, err
	}
	c.children = append(c.children, child)
	web := &http.Client{Transport: &http.Transport{DialContext: Dialer(o.Namespace), DisableKeepAlives: true}}
	err = child.WaitFor(ctx, func(ctx context.Context) error { return healthy(ctx, web, "http://"+health.String()+"/readyz") })
	return &Engine{Child: child, Metrics: metrics}, err
}

// copyFluxCRDs asks for the module of sources outside of ours, because no package of it is
// imported: Go's checksum database vouches for it.
func copyFluxCRDs(ctx context.Context, source, dir string) error {
	applier, err := module(ctx, source, "list", "-m", "-json", fluxVersions, fluxApplier)
	if err != nil {
		return err
	}
	types, err := module(ctx, source, "list", "-m", "-json", fluxVersions, fluxSources+"/api")
	if err != nil {
		return err
	}
	sources, err := module(ctx, dir, "mod", "download", "-json", fluxSources+"@"+types.Version)
	if err != nil {
		return err
	}
	for _, m := range []goModule{applier, sources} {
		from := filepath.Join(m.Dir, "config", "crd", "bases")
		if err := os.CopyFS(filepath.Join(dir, "crds"), os.DirFS(from)); err != nil {
			return fmt.Errorf("copying Flux's CRDs: %w", err)
		}
	}
	return nil
}

type goModule struct{ Dir, Version string }

// module runs the go command in a folder and reads the module that it prints.
func module(ctx context.Context, dir string, args ...string) (m goModule, err error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	if err != nil {
		return m, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, out)
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return m, fmt.Errorf("reading the output of go %s: %w", strings.Join(args, " "), err)
	}
	return m, nil
}
