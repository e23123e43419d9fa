package removal

import "time"

// maxWatch is how long a controller watches at most before it removes lost units.
const maxWatch = 2 * time.Minute

// OwnWatch returns how long a controller must have watched the cluster itself before it removes
// a unit with this grace. The clock of the loss may have been written by a controller that was
// cut off, or a long time ago.
func OwnWatch(grace time.Duration) time.Duration { return min(grace, maxWatch) }
