package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"gridproxy/cmd/command"
	"gridproxy/cmd/command/objectnames"
	"gridproxy/cmd/gridproxy/apiserver"
	"gridproxy/topology"
	"gridproxy/topology/manifest"
	"gridproxy/topology/watch"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds that are completed, by their paths in the API.
const (
	servicesPath = "/api/v1/services"
	nodesPath    = "/api/v1/nodes"
)

// completeFlag makes a shell complete a flag with names of the objects at an API path: part
// picks the namespace or the name.
func (in *inputs) completeFlag(cmd *cobra.Command, flag, path string, part func(namespace, name string) string) {
	list := command.CompleteNames(func(ctx context.Context, _ []string, _ string, add func(string) bool) error {
		return in.eachName(ctx, path, func(namespace, name string) bool { return add(part(namespace, name)) })
	})
	_ = cmd.RegisterFlagCompletionFunc(flag, list) // fails only for a flag that has one
}

// completeServices makes a shell complete arguments that are Services, at most a number of
// them, and --namespace.
func (in *inputs) completeServices(cmd *cobra.Command, namespace *string, most int) {
	cmd.ValidArgsFunction = command.CompleteNames(func(ctx context.Context, args []string, typed string, add func(string) bool) error {
		if len(args) >= most {
			return nil
		}
		return in.eachName(ctx, servicesPath, func(in, name string) bool {
			for _, form := range command.ServiceForms(in, name, *namespace, cmp.Or(*namespace, "default"), typed) {
				if !add(form) {
					return false
				}
			}
			return true
		})
	})
	in.completeFlag(cmd, "namespace", servicesPath, func(namespace, _ string) string { return namespace })
}

// eachName calls add with each object at an API path, in the source that the flags name, until
// add returns false.
func (in *inputs) eachName(ctx context.Context, path string, add func(namespace, name string) bool) error {
	if in.FromState == "" && len(in.Manifests) == 0 {
		config, err := apiserver.RestConfig(in.Options, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		return objectnames.Each(ctx, config, path, add)
	}
	nodes, services, err := in.objectsInFiles()
	switch {
	case err != nil:
		return err
	case path == nodesPath:
		addNames(nodes, add)
	default:
		addNames(services, add)
	}
	return nil
}

func addNames[T topology.Object](objects []T, add func(namespace, name string) bool) {
	for _, o := range objects {
		if !add(o.GetNamespace(), o.GetName()) {
			return
		}
	}
}

// objectsInFiles reads the saved state, which has only its own Node, or the manifests that the
// flags name. A pipe or standard input is an error, because the command itself reads it later.
func (in *inputs) objectsInFiles() ([]*corev1.Node, []*corev1.Service, error) {
	if in.FromState != "" {
		read, err := watch.ReadState(in.FromState)
		return []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: read.Node}}}, read.Snapshot.Services, err
	}
	for _, file := range in.Manifests {
		info, err := os.Stat(file) // a pipe or standard input would be read away from the command
		if err != nil {
			return nil, nil, err
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return nil, nil, fmt.Errorf("%s is no file", file)
		}
	}
	objects, _, err := manifest.Read(in.Manifests, strings.NewReader(""))
	return objects.Nodes, objects.Services, err
}
