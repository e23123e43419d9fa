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
	"gridproxy/topology/manifest"
	"gridproxy/topology/watch"

	"github.com/spf13/cobra"
)

// The kinds that are completed, by their paths in the API.
const (
	servicesPath = "/api/v1/services"
	nodesPath    = "/api/v1/nodes"
)

func (in *inputs) completeNode(cmd *cobra.Command) {
	list := command.CompleteNames(func(ctx context.Context, _ []string, _ string, add func(string) bool) error {
		return in.eachName(ctx, nodesPath, func(_, name string) bool { return add(name) })
	})
	_ = cmd.RegisterFlagCompletionFunc("node-name", list) // fails only for a flag that has one
}

// completeServices completes arguments that are Services, at most a number of them, and
// --namespace.
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
	in.completeNamespace(cmd)
}

func (in *inputs) completeNamespace(cmd *cobra.Command) {
	list := command.CompleteNames(func(ctx context.Context, _ []string, _ string, add func(string) bool) error {
		return in.eachName(ctx, servicesPath, func(namespace, _ string) bool { return add(namespace) })
	})
	_ = cmd.RegisterFlagCompletionFunc("namespace", list) // fails only for a flag that has one
}

// eachName calls add with the objects of a kind in the source that the flags name, until it returns
// false.
func (in *inputs) eachName(ctx context.Context, path string, add func(namespace, name string) bool) error {
	if in.FromState != "" {
		return in.eachSavedName(path, add)
	}
	if len(in.Manifests) == 0 {
		config, err := apiserver.RestConfig(in.Options, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		return objectnames.Each(ctx, config, path, add)
	}
	for _, file := range in.Manifests {
		info, err := os.Stat(file) // a pipe or standard input would be read away from the command
		if err != nil {
			return err
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no file", file)
		}
	}
	objects, _, err := manifest.Read(in.Manifests, strings.NewReader(""))
	if err != nil {
		return err
	}
	if path == nodesPath {
		for _, n := range objects.Nodes {
			if !add("", n.Name) {
				return nil
			}
		}
		return nil
	}
	for _, s := range objects.Services {
		if !add(s.Namespace, s.Name) {
			return nil
		}
	}
	return nil
}

// eachSavedName calls add as eachName does, with the objects of a saved state.
func (in *inputs) eachSavedName(path string, add func(namespace, name string) bool) error {
	read, err := watch.ReadState(in.FromState)
	if err != nil {
		return err
	}
	if path == nodesPath {
		add("", read.Node)
		return nil
	}
	for _, s := range read.Snapshot.Services {
		if !add(s.Namespace, s.Name) {
			break
		}
	}
	return nil
}
