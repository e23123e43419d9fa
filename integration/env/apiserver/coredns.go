package apiserver

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
)

// EnsureCoreDNS is Ensure for CoreDNS with the plugins of a cluster's DNS, in the version that
// integration/agreement compares names with. It returns the path of the program.
func EnsureCoreDNS(ctx context.Context, progress io.Writer) (string, error) {
	return ensureCoreDNS(ctx, "coredns", "CoreDNS once (about 2 minutes on two cores)", progress)
}

// EnsureNodeLocalDNS is EnsureCoreDNS with the plugins of NodeLocal DNSCache only.
func EnsureNodeLocalDNS(ctx context.Context, progress io.Writer) (string, error) {
	return ensureCoreDNS(ctx, "nodelocal", "CoreDNS as NodeLocal DNSCache once (about a minute on two cores)", progress)
}

// ensureCoreDNS builds the program of that name in integration/agreement/testdata.
func ensureCoreDNS(ctx context.Context, name, what string, progress io.Writer) (string, error) {
	source := "testdata/" + name + "/main.go"
	dir, err := build{
		what:   what,
		module: "agreement", files: []string{"go.mod", "go.sum", source}, flags: []string{"-trimpath", "-ldflags", "-s -w"},
		targets: []target{{name: name, pkg: "./" + source}},
	}.ensure(ctx, progress)
	if err != nil {
		return "", fmt.Errorf("building %s: %w", what, err)
	}
	return filepath.Join(dir, name), nil
}
