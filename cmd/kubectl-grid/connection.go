package main

import (
	"fmt"
	"io"
	"slices"

	"gridproxy/cmd/command"

	"github.com/spf13/pflag"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to sign in that kubectl has
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// connection is how to reach the API server, by the flags and files of kubectl.
type connection struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	problems  io.Writer // for what is waited for
}

// shownFlags are those of the connection that are in the help.
var shownFlags = [...]string{"kubeconfig", "context", "cluster", "user", "namespace"}

// newConnection declares its flags, and returns what they will say. They come from client-go,
// as kubectl's own do; k8s.io/cli-runtime declares the same, and would link kustomize.
func newConnection(flags *pflag.FlagSet, problems io.Writer) *connection {
	c := &connection{rules: clientcmd.NewDefaultClientConfigLoadingRules(), problems: problems}
	flags.StringVar(&c.rules.ExplicitPath, "kubeconfig", "", "`FILE` that says how to reach the API server; without it KUBECONFIG, else ~/.kube/config")
	clientcmd.BindOverrideFlags(&c.overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shownFlags[:], f.Name) })
	for name, usage := range map[string]string{
		"context": "`NAME` of the kubeconfig's context", "cluster": "`NAME` of the kubeconfig's cluster", "user": "`NAME` of the kubeconfig's user",
		"namespace": "`NAMESPACE` of what is asked for",
	} {
		flags.Lookup(name).Usage = usage
	}
	return c
}

func (c *connection) loader() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, &c.overrides)
}

func (c *connection) config() (*rest.Config, error) {
	config, err := c.loader().ClientConfig()
	if err != nil {
		return nil, unreadable(err)
	}
	config.QPS = -1 // one person's question; the API server has its own limits
	config.UserAgent = "kubectl-grid/" + command.ThisBuild().Version
	config.WarningHandler = rest.NoWarnings{}
	return config, nil
}

// givenNamespace returns the namespace of --namespace; "" = the flag is not given.
func (c *connection) givenNamespace() string { return c.overrides.Context.Namespace }

// namespace returns the namespace of --namespace, else of the context, else default.
func (c *connection) namespace() (string, error) {
	namespace, _, err := c.loader().Namespace()
	if err != nil {
		return "", unreadable(err)
	}
	return namespace, nil
}

// unreadable returns err with what to do about a kubeconfig that cannot be read. If there is no
// kubeconfig, it is a usage error.
func unreadable(err error) error {
	err = fmt.Errorf("reading how to reach the API server: %w; give --kubeconfig and --context as for kubectl", err)
	if clientcmd.IsEmptyConfig(err) {
		return command.NewUsageError(err)
	}
	return err
}
