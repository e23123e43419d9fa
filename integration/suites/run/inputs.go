package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"gridproxy/integration/suites"
)

// recently is the age of commits that count as changes without CI_BASE, for git log --since.
const recently = "24 hours ago"

// printOrder prints the order in which the extended suites run, and why.
func printOrder(ctx context.Context, base string, table []suites.Suite) {
	order, near := ordered(ctx, base, table)
	for i, s := range order {
		why := "its turn"
		switch {
		case i < near:
			why = "near to a change"
		case s.Rare:
			why = "the rare suite of this run"
		}
		fmt.Printf("%2d %-20s %s (%s)\n", i+1, s.Name, why, suites.Seconds(s.Usual))
	}
}

// ordered returns the extended suites of a run of CI in their order. If git does not know what has
// changed, no suite is near. If it knows no commit, the day decides the order.
func ordered(ctx context.Context, base string, table []suites.Suite) (order []suites.Suite, near int) {
	seed, err := git(ctx, "rev-parse", "HEAD")
	if err != nil {
		seed = time.Now().Format(time.DateOnly)
		fmt.Fprintf(os.Stderr, "warning: %v: the day %s decides the order of the suites\n", err, seed)
	}
	files, err := changedFiles(ctx, base)
	if err != nil {
		fmt.Fprintf(os.Stderr, "warning: %v: no suite is near to a change\n", err)
	}
	extended := suites.Tiers(table, suites.Extended)
	for i, s := range extended {
		extended[i].Reads = slices.Concat(s.Reads, modulesOf(s))
	}
	return suites.Order(extended, files, strings.TrimSpace(seed))
}

// changedFiles returns the files that commits after base, without it those of the last day, and
// uncommitted changes have touched.
func changedFiles(ctx context.Context, base string) ([]string, error) {
	questions := [][]string{
		{"log", "--since=" + recently, "-m", "--first-parent", "--name-only", "--format="},
		{"diff", "--name-only", "HEAD"},
	}
	if base != "" {
		questions = [][]string{{"diff", "--merge-base", "--name-only", base, "--"}}
	}
	var files []string
	for _, args := range questions {
		out, err := git(ctx, args...)
		if err != nil {
			return nil, fmt.Errorf("asking git for what changed: %w", err)
		}
		files = append(files, strings.Fields(out)...)
	}
	return files, nil
}

func git(ctx context.Context, args ...string) (string, error) {
	var diag bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Stderr = &diag
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(diag.Bytes()))
	}
	return string(out), nil
}

// modulesOf returns the files that name the versions of a suite's own module and of its tools.
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

// modFiles returns a go.mod and its go.sum, or another pair for -modfile.
func modFiles(module, modFile string) []string {
	return []string{module + "/" + modFile, module + "/" + strings.TrimSuffix(modFile, ".mod") + ".sum"}
}
