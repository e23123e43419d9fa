package join

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/topology/excerpt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
)

// request is the command line of join.
type request struct {
	std              command.Stdio
	cluster          string
	kubeconfig       string // of the hub; "" = as kubectl finds it
	server           string // "" = that of the kubeconfig
	memberKubeconfig string // "" = the member fetches its Grids
	namespace        string // of grid-controller, in the member or on the hub
	lifetime         time.Duration
}

// New makes the command join.
func New(std command.Stdio) *cobra.Command {
	r := &request{std: std}
	cmd := &cobra.Command{
		Use:   "join --cluster NAME [--kubeconfig FILE] [--server URL | --member-kubeconfig FILE]",
		Short: "Let one more cluster have this cluster's Grids",
		Long: `Prepare this cluster, the hub, for one more cluster, a member, to which it distributes Grids. Run it
with an administrator's rights on the hub.

It makes or updates the FleetCluster, the namespace fleet-NAME and, in it, an account that can do
nothing but read what is for this member, report on it, and renew its own token. Then it prints a
manifest for the member, with a token of that account. Keep it secret: apply it, and store it nowhere.

Run it again at any time: when the token has expired or was stolen, or when the cluster was replaced.
Every earlier token then ends.

With --member-kubeconfig, the hub reaches the member instead. The member gets no account, and nothing
is printed. The kubeconfig must contain its credentials; it is kept in a Secret on the hub.`,
		Example: `  grid-controller join --cluster west | kubectl --context west apply --server-side -f -
  grid-controller join --cluster north --member-kubeconfig north.kubeconfig`,
		DisableFlagsInUseLine: true,
		Args:                  command.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return command.NewUsageError(r.check(cmd.Flags().Changed("token-lifetime")))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&r.cluster, "cluster", "", "`NAME` of the cluster on the hub, of its FleetCluster")
	f.StringVar(&r.kubeconfig, "kubeconfig", "", kubeconfigHelp)
	f.StringVar(&r.server, "server", "", "`URL` at which the member reaches the hub's API server; without it: that of the kubeconfig")
	f.StringVar(&r.memberKubeconfig, "member-kubeconfig", "", "`FILE` with which the hub reaches the member; without it the member fetches its Grids")
	f.StringVar(&r.namespace, "namespace", defaultNamespace, "namespace of grid-controller: in the member, and with --member-kubeconfig on the hub")
	f.DurationVar(&r.lifetime, "token-lifetime", 90*24*time.Hour, "how long the token is valid, if the API server allows it; the member renews it daily")
	return cmd
}

const (
	kubeconfigHelp   = "`FILE` that says how to reach the hub; without it: as kubectl finds it"
	defaultNamespace = "gridproxy"
)

func (r *request) check(lifetimeGiven bool) error {
	errs := []error{nameFault(r.cluster)}
	wrong := func(when bool, format string, args ...any) {
		if when {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	push := r.memberKubeconfig != ""
	wrong(push && r.server != "", "--server and --member-kubeconfig are both given: the hub reaches a member with a kubeconfig, so leave out --server")
	wrong(push && lifetimeGiven, "--token-lifetime and --member-kubeconfig are both given: a member with a kubeconfig gets no token, so leave out --token-lifetime")
	wrong(r.server != "" && !isServer(r.server), "--server %s: want a URL such as https://hub.example.com:6443", excerpt.Quoted(r.server))
	wrong(len(validation.IsDNS1123Label(r.namespace)) > 0, "--namespace %s: want the name of a namespace", excerpt.Quoted(r.namespace))
	wrong(r.lifetime < tokenLifetimeMin || r.lifetime > tokenLifetimeMax, "--token-lifetime %s: want %s to %s", r.lifetime, tokenLifetimeMin, tokenLifetimeMax)
	return errors.Join(errs...)
}

// isServer reports whether a text can be the URL of an API server.
func isServer(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}
