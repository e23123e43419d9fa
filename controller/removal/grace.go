package removal

import (
	"fmt"
	"time"
)

// ParseGrace reads for how long something that is lost is kept: a duration such as 30m or 0s, or
// never, which is negative.
func ParseGrace(text string) (time.Duration, error) {
	if text == "never" {
		return -1, nil
	}
	grace, err := time.ParseDuration(text)
	if err != nil || grace < 0 {
		return 0, fmt.Errorf("%.80q is neither a duration nor never: write for example 30m, 0s or never", text)
	}
	return grace, nil
}

// watchMax is how long a controller watches at most before it removes lost units.
const watchMax = 2 * time.Minute

// OwnWatch returns how long a controller must have watched the cluster itself before it removes
// a unit with this grace. The clock of the loss may have been written by a controller that was
// cut off, or a long time ago.
func OwnWatch(grace time.Duration) time.Duration { return min(grace, watchMax) }
