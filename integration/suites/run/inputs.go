package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gridproxy/integration/suites"
)

// recently is which commits count as changes, for git log --since.
const recently = "24 hours ago"

// printOrder prints the order in which the extended suites run.
func printOrder(ctx context.Context, table []suites.Suite) error {
	order, changed, err := ordered(ctx, table)
	if err != nil {
		return err
	}
	for i, s := range order {
		why := "its turn"
		if i < changed {
			why = "an input changed in the last day"
		}
		fmt.Printf("%2d %-20s %s (%s)\n", i+1, s.Name, why, suites.Seconds(s.Usual))
	}
	return nil
}

// ordered are the extended suites in the order in which CI runs them.
func ordered(ctx context.Context, table []suites.Suite) (order []suites.Suite, changed int, err error) {
	extended := suites.Tiers(table, suites.Extended)
	files, err := changedFiles(ctx)
	if err != nil {
		// Without a history nothing is known to have changed: the order of the day is as good as any.
		fmt.Fprintf(os.Stderr, "warning: %v: suites run in the order of the day\n", err)
		files = nil
	}
	inputs := map[string]suites.Inputs{}
	for _, s := range extended {
		if inputs[s.Name], err = inputsOf(ctx, s); err != nil {
			return nil, 0, err
		}
	}
	order, changed = suites.Order(extended, inputs, files, now())
	return order, changed, nil
}

// changedFiles are the files that commits of the last day and uncommitted changes have touched.
func changedFiles(ctx context.Context) ([]string, error) {
	var files []string
	for _, args := range [][]string{
		{"log", "--since=" + recently, "-m", "--first-parent", "--name-only", "--format="},
		{"diff", "--name-only", "HEAD"},
	} {
		out, err := exec.CommandContext(ctx, "git", args...).Output()
		if err != nil {
			return nil, fmt.Errorf("asking git for what changed (git %s): %w", args[0], err)
		}
		files = append(files, strings.Fields(string(out))...)
	}
	return files, nil
}

// inputsOf asks go list for the packages of a suite and of the programs that its tests start.
func inputsOf(ctx context.Context, s suites.Suite) (suites.Inputs, error) {
	inputs := suites.Inputs{Reads: slices.Concat(s.Reads, modulesOf(s))}
	if len(s.Packages) == 0 {
		return inputs, nil
	}
	var err error
	if inputs.Tested, err = folders(ctx, s.Module, slices.Concat(s.BuildFlags(), s.Packages)); err != nil {
		return inputs, err
	}
	if inputs.Depends, err = folders(ctx, s.Module, slices.Concat([]string{"-deps", "-test"}, s.BuildFlags(), s.Packages)); err != nil {
		return inputs, err
	}
	if len(s.Starts) > 0 {
		started, err := folders(ctx, "", append([]string{"-deps"}, s.Starts...))
		if err != nil {
			return inputs, err
		}
		inputs.Depends = append(inputs.Depends, started...)
	}
	return inputs, nil
}

// modulesOf are the files that name the versions of a suite's own module and of the tools that it
// starts.
func modulesOf(s suites.Suite) []string {
	var files []string
	if s.Module != "" {
		files = append(files, modFiles(s.Module, "go.mod")...)
	}
	if s.ModFile != "" {
		files = append(files, modFiles(s.Module, s.ModFile)...)
	}
	for _, n := range s.Needs {
		if r := prerequisiteOf(n); r.module != "" {
			files = append(files, modFiles("integration/"+r.module, cmp.Or(r.modFile, "go.mod"))...)
		}
	}
	return files
}

// modFiles are a go.mod and its go.sum, or another pair for -modfile.
func modFiles(module, modFile string) []string {
	return []string{module + "/" + modFile, module + "/" + strings.TrimSuffix(modFile, ".mod") + ".sum"}
}

// folders asks go list for packages of this repository, and returns their folders below its root.
func folders(ctx context.Context, module string, args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the folder that this runs in: %w", err)
	}
	var diag bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-e", "-json=Dir,Standard"}, args...)...)
	cmd.Dir, cmd.Stderr = filepath.Join(root, module), &diag
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %v: %w: %s", args, err, bytes.TrimSpace(diag.Bytes()))
	}
	var found []string
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir      string
			Standard bool
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading what go list prints: %w", err)
		}
		if relative, err := filepath.Rel(root, p.Dir); err == nil && !p.Standard && !strings.HasPrefix(relative, "..") {
			found = append(found, filepath.ToSlash(relative))
		}
	}
}
