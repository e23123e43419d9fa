package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gridproxy/cmd/command"

	"github.com/spf13/cobra"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// propagation is how long every API server of a cluster is given to work with a definition that was
// replaced: what Kubernetes itself allows for that.
const propagation = 5 * time.Second

// New makes the command migrate-crds.
func New(out io.Writer) *cobra.Command {
	var kubeconfig string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "migrate-crds [--dry-run] [--kubeconfig FILE]",
		Short: "Replace SuperEdge's CustomResourceDefinitions by ours",
		Long: `Replace SuperEdge's CustomResourceDefinitions of Grids, NodeUnits and NodeGroups by ours, keep
every object, store each object in the newest version, and print what was done. kubectl apply
cannot do that: it neither removes SuperEdge's conversion webhook nor changes what is stored.

Stop SuperEdge's controllers first, because they restore their definitions. Definitions that the
cluster does not have are not installed; kubectl apply --server-side -f deploy/crds does that,
before or after.

Nothing is deleted. After a failure, run the command again: it continues where it stopped.`,
		Example: `  grid-controller migrate-crds --dry-run --kubeconfig ~/.kube/config
  grid-controller migrate-crds --kubeconfig ~/.kube/config`,
		DisableFlagsInUseLine: true,
		Args:                  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := connect(kubeconfig)
			if err != nil {
				return err
			}
			return Run(cmd.Context(), c, Options{Out: out, DryRun: dryRun, Pause: propagation})
		},
	}
	f := cmd.Flags()
	f.StringVar(&kubeconfig, "kubeconfig", "", "`FILE` that says how to reach the API server; without it: in-cluster")
	f.BoolVar(&dryRun, "dry-run", false, "only say what would be done")
	return cmd
}

func connect(kubeconfig string) (client.Client, error) {
	var config *rest.Config
	var err error
	if kubeconfig == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w; give --kubeconfig", err)
	}
	config.QPS = -1 // one person's command; the API server has its own limits
	config.WarningHandler = rest.NoWarnings{}
	return NewClient(config)
}

// NewClient returns a client for Run, which knows CustomResourceDefinitions.
func NewClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := apiext.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("preparing a client: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return c, nil
}

// Options say how Run works.
type Options struct {
	Out    io.Writer     // what was done is written here
	DryRun bool          // only say what would be done
	Pause  time.Duration // between a definition and the objects under it
}

// Run makes the definitions of one cluster ours, as the command does, and prints that. It
// continues if one of them fails; the error joins all failures.
func Run(ctx context.Context, c client.Client, o Options) error {
	all, err := Definitions()
	if err != nil {
		return err
	}
	m := &migration{c, o}
	var errs []error
	for i := range all {
		if err := m.one(ctx, &all[i]); err != nil {
			errs = append(errs, fmt.Errorf("CustomResourceDefinition %s: %w", all[i].Name, err))
		}
	}
	return errors.Join(errs...)
}
