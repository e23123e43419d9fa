package host

import (
	"context"
	"os"
	"os/exec"
)

// LoadModule loads a kernel module, unless there is the file that it makes. Where that fails and
// matters, what needs the module says so.
func LoadModule(ctx context.Context, name, makes string) {
	if _, err := os.Stat(makes); err != nil {
		_ = exec.CommandContext(ctx, "modprobe", name).Run()
	}
}
