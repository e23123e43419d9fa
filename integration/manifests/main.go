// Command manifests writes the plain manifests in deploy, rendered from the chart by the real helm,
// and the page about the chart.
//
// The tests beside it are about what the manifests install. Those of rights show that the programs
// work with exactly the rights of the manifests: with all of them nothing is refused and everything
// is done, and without any single one something is refused; they also hold docs/security.md to the
// manifests. Those of image build the container image for every architecture, as make image does
// where there is neither a registry nor a container engine, and look into what comes out.
//
// Invariant: a right in deploy that no program asks for fails a test, as does one that is missing.
// Of an image, nothing is left but buildah's list of digests, /var/lib/containers/cache, whose
// place cannot be chosen. Not pure: control planes, both programs, buildah and debootstrap as root,
// and some hundred MB that are fetched (suite image-test, in the extended tier).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"gridproxy/integration/manifests/chart"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := writeFiles(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func writeFiles(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "helm-")
	if err != nil {
		return fmt.Errorf("making a folder for helm: %w", err)
	}
	defer os.RemoveAll(dir)
	helm, err := chart.New(ctx, os.Stderr, dir)
	if err != nil {
		return err
	}
	files, err := chart.Plain(ctx, helm)
	if err != nil {
		return err
	}
	root, err := chart.Root(ctx)
	if err != nil {
		return err
	}
	readme, err := chart.Readme(os.DirFS(helm.Chart))
	if err != nil {
		return err
	}
	files[filepath.Join("charts", chart.Name, chart.ReadmeFile)] = readme
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, "deploy", name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing into deploy: %w", err)
		}
	}
	return nil
}
