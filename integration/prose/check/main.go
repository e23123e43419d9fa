// Command check reports where comments and pages break the rules of package prose, in lines that
// are newer than a commit:
//
//	go run ./integration/prose/check COMMIT
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"gridproxy/integration/prose"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: check COMMIT: reports lines that are newer than COMMIT")
		os.Exit(2)
	}
	findings, err := run(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if findings > 0 {
		fmt.Printf("%d lines break a rule of integration/prose/rule.go\n", findings)
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
		added := prose.Added(diff)
		for _, f := range prose.Check(rules(name), lines(name, content)) {
			if added[f.Line] {
				fmt.Printf("%s:%d: %s\n", name, f.Line, f.Message)
				findings++
			}
		}
	}
	return findings, nil
}

// rules are those for a file: the one that lists the rules may name what it forbids.
func rules(name string) []prose.Rule {
	if strings.HasPrefix(name, "integration/prose/") {
		return nil
	}
	return prose.Rules()
}

func lines(name string, content []byte) []prose.Line {
	if strings.HasSuffix(name, ".md") {
		return prose.OfPage(string(content))
	}
	return prose.OfGo(content)
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
