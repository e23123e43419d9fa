package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// SuperEdgeProgram is a program of SuperEdge whose place one of ours takes.
type SuperEdgeProgram struct {
	Name  string
	Flags []SuperEdgeFlag
}

// SuperEdgeFlag maps a flag of SuperEdge to ours.
type SuperEdgeFlag struct {
	Name string
	Here string // begins with sameFlag, "write --FLAG" or "not needed: "
}

// sameFlag begins the line of a flag that our program has under the same name.
const sameFlag = "the same"

// FindSuperEdgeProgram returns the program of SuperEdge whose place our program takes. Without such
// a program it is empty. docs/migrate-from-superedge.md has the same lines.
func FindSuperEdgeProgram(ours string) SuperEdgeProgram {
	const sameLog = "not needed: log lines go to standard error alone"
	var p SuperEdgeProgram
	vmodule, flush := "not needed: --v is the verbosity of the whole log", sameLog
	switch ours {
	case "grid-controller":
		p = SuperEdgeProgram{"application-grid-controller", controllerFlags()}
	case "gridproxy": // it has the two flags because kube-proxy has them
		p = SuperEdgeProgram{"application-grid-wrapper", wrapperFlags()}
		vmodule, flush = sameFlag+", without effect", sameFlag+", without effect"
	default:
		return p
	}
	for _, name := range []string{
		"add-dir-header", "alsologtostderr", "log-backtrace-at", "log-dir", "log-file", "log-file-max-size",
		"logtostderr", "one-output", "skip-headers", "skip-log-headers", "stderrthreshold",
	} {
		p.Flags = append(p.Flags, SuperEdgeFlag{name, sameLog})
	}
	p.Flags = append(p.Flags, SuperEdgeFlag{"log-flush-frequency", flush}, SuperEdgeFlag{"v", sameFlag},
		SuperEdgeFlag{"version", "write " + ours + " version"}, SuperEdgeFlag{"vmodule", vmodule})
	return p
}

// controllerFlags returns the flags of application-grid-controller, without those of its log.
func controllerFlags() []SuperEdgeFlag {
	return []SuperEdgeFlag{
		{"feature-gates", "not needed: its gate EndpointSlice has no effect"},
		{"kube-burst", "write --kube-api-burst"},
		{"kube-qps", "write --kube-api-qps"},
		{"kubeconfig", sameFlag},
		{"leader-elect", sameFlag + ", and on by default"},
		{"leader-elect-lease-duration", sameFlag},
		{"leader-elect-renew-deadline", sameFlag},
		{"leader-elect-resource-lock", "not needed: the lock is a Lease"},
		{"leader-elect-resource-name", sameFlag + "; the default is grid-controller"},
		{"leader-elect-resource-namespace", sameFlag + "; the default is the Pod's own"},
		{"leader-elect-retry-period", sameFlag},
		{"master", "not needed: the file of --kubeconfig has the address"},
		{"sync-period", "not needed: changes are watched"},
		{"worker", "not needed: the number of workers is fixed"},
	}
}

// wrapperFlags returns the flags of application-grid-wrapper, without those of its log.
func wrapperFlags() []SuperEdgeFlag {
	const noServer = "not needed: no kube-proxy runs, so nothing is served to it"
	return []SuperEdgeFlag{
		{"bind-address", noServer},
		{"ca-file", noServer},
		{"cert-file", noServer},
		{"debug", "write --profiling"},
		{"hostname", "write --node-name"},
		{"insecure", noServer},
		{"key-file", noServer},
		{"kube-burst", "write --kube-api-burst"},
		{"kube-qps", "write --kube-api-qps"},
		{"kubeconfig", sameFlag},
		{"notify-channel-size", noServer},
		{"service-autonomy-enhancement", "not needed: edge-health is not asked; endpoints are ready if their EndpointSlice says so"},
		{"support-endpointslice", "not needed: EndpointSlices are always read"},
		{"wrapper-in-cluster", "not needed: the annotations of the EndpointSlice default/kubernetes decide"},
	}
}

// withSuperEdgeFlag adds to the error of a flag that SuperEdge has, and that means nothing to
// our program, what to do instead. It returns nil if err is not about such a flag.
func withSuperEdgeFlag(cmd *cobra.Command, err error) error {
	var name string
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name = unknown.GetSpecifiedName()
	} else if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		name = invalid.GetFlag().Name
	}
	p := FindSuperEdgeProgram(cmd.Root().Name())
	for _, f := range p.Flags {
		if f.Name == strings.ReplaceAll(name, "_", "-") && !strings.HasPrefix(f.Here, sameFlag) {
			return fmt.Errorf("%w; instead of --%s of %s: %s", err, f.Name, p.Name, f.Here)
		}
	}
	return nil
}
