package options

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestConfigIsLimited: an endless file is an error before it fills the memory.
func TestConfigIsLimited(t *testing.T) {
	_, err := ReadConfig("/dev/zero", pflag.NewFlagSet("", pflag.ContinueOnError))
	if err == nil || !strings.Contains(err.Error(), "--config: /dev/zero: is larger than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}
