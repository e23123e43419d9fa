package host

import (
	"context"
	"os"
	"time"
)

// moduleLimit is how long loading a module may take. A good run takes less than a second.
const moduleLimit = 30 * time.Second

// LoadModule loads a kernel module, unless the file that the module creates exists. An error is not
// returned: what needs the module reports it.
func LoadModule(ctx context.Context, name, makes string) {
	if _, err := os.Stat(makes); err != nil {
		ctx, cancel := context.WithTimeout(ctx, moduleLimit)
		defer cancel()
		_ = Command(ctx, "modprobe", name).Run()
	}
}
