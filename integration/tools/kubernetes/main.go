// Command kcp is several Kubernetes programs in one file, so that they are linked once and cached as one.
// Which program it is depends on the name it was called by (a link kube-apiserver -> kcp) or else
// on its first argument.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	// kubectl's credentials plugins and every component's metrics and log formats, as in their own main packages.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

func main() { os.Exit(run(os.Args)) }

// programs maps a program's name to its entry, which takes the arguments with the program's name first.
func programs() map[string]func(args []string) int {
	command := func(build func() *cobra.Command) func([]string) int {
		return func(args []string) int {
			os.Args = args // some of them read the global argument list themselves
			return cli.Run(build())
		}
	}
	return map[string]func([]string) int{
		"etcd":                    func(args []string) int { etcdmain.Main(args); return 0 },
		"kube-apiserver":          command(apiserver.NewAPIServerCommand),
		"kube-controller-manager": command(controllers.NewControllerManagerCommand),
		"kube-scheduler":          command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kube-proxy":              command(proxy.NewProxyCommand),
		"kubelet":                 command(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
		"kubectl":                 command(kubectl.NewDefaultKubectlCommand),
	}
}

func run(args []string) int {
	all := programs()
	if len(args) > 0 {
		args[0] = filepath.Base(args[0])
		if program, ok := all[args[0]]; ok {
			return program(args)
		}
	}
	if len(args) > 1 {
		if program, ok := all[args[1]]; ok {
			return program(args[1:])
		}
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "kcp: call it as, or with the first argument, one of: %s\n", strings.Join(names, ", "))
	return 2
}
