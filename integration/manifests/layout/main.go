package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: layout COMMIT: reports lines that are newer than COMMIT")
		os.Exit(2)
	}
	findings, err := run(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if findings > 0 {
		fmt.Printf("%d lines break a rule of integration/manifests/layout/rule.go\n", findings)
		os.Exit(1)
	}
}

func run(commit string) (findings int, err error) {
	changed, err := git("diff", "--name-status", "--find-renames", "--diff-filter=d", commit, "--", "*.go", "*.md", ":!**/testdata/**")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(changed) {
		paths := strings.Split(strings.TrimSpace(line), "\t")[1:] // of a moved file, first the old one
		name := paths[len(paths)-1]
		content, err := os.ReadFile(name)
		if err != nil {
			return 0, fmt.Errorf("reading what changed: %w", err)
		}
		diff, err := git(append([]string{"diff", "--unified=0", "--find-renames", commit, "--"}, paths...)...)
		if err != nil {
			return 0, err
		}
		added := Added(diff)
		for _, f := range Check(rulesFor(name), linesOf(name, content)) {
			if added[f.Line] {
				fmt.Printf("%s:%d: %s\n", name, f.Line, f.Message)
				findings++
			}
		}
	}
	return findings, nil
}

// rulesFor are the rules for a file: the one that lists the rules may name what it forbids.
func rulesFor(name string) []Rule {
	if strings.HasPrefix(name, "integration/manifests/layout/") {
		return nil
	}
	return Rules()
}

func linesOf(name string, content []byte) []Line {
	if strings.HasSuffix(name, ".md") {
		return OfPage(string(content))
	}
	return OfGo(content)
}

func git(args ...string) (string, error) {
	var diag bytes.Buffer
	cmd := exec.Command("git", args...)
	cmd.Stderr = &diag
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(diag.Bytes()))
	}
	return string(out), nil
}
