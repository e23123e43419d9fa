//go:build tools

package agreement

import (
	_ "github.com/coredns/coredns/plugin/forward" // for testdata/coredns
	_ "github.com/coredns/coredns/plugin/metrics" // for testdata/coredns
)
