// Command manifests writes the plain manifests in deploy, rendered from the chart by the real helm.
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
	if err := write(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func write(ctx context.Context) error {
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
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, "deploy", name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing a plain manifest: %w", err)
		}
	}
	return nil
}
