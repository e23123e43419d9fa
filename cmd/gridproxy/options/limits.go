package options

import (
	"math"
	"time"
)

// The longest durations that a flag takes. A longer one is a slip of the pen, and shows only when
// something fails.
const (
	minSyncPeriodMax   = time.Hour          // no rule changes meanwhile
	syncPeriodMax      = 24 * time.Hour     // a sync that hangs is reported after twice this long
	drainTimeoutMax    = 7 * 24 * time.Hour // a removed endpoint keeps its connections
	verifyPeriodMax    = time.Hour          // what another process changed stays
	otherProxyAfterMax = 24 * time.Hour     // another service proxy is not reported
	reconnectGraceMax  = time.Hour          // a client may be led to an endpoint that is gone

	// kernelTimeoutMax is what some kernel takes: it keeps such a time as ticks in a signed number of
	// 32 bits, and has at least 100 ticks a second. Most have 250 or 1000, and refuse less.
	kernelTimeoutMax = math.MaxInt32 / 100 * time.Second
)

const (
	// ConfigMax is the size of the file of --config in bytes. A complete KubeProxyConfiguration has 2
	// KiB.
	ConfigMax = 1 << 20
	// interfaceNameMax is IFNAMSIZ without the zero byte at the end.
	interfaceNameMax = 15
)
