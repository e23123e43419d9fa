package removal

import (
	"fmt"
	"strconv"
	"strings"
)

// Budget is how many units may be removed within a Window without a release: a number of units, or
// a percentage of them. The zero Budget allows none.
type Budget struct {
	n       int
	percent bool
}

// budgetMax bounds a number, so that arithmetic with it cannot overflow.
const budgetMax = 1_000_000

// Default returns the Budget of 5 % of the units, and at least one.
func Default() Budget { return Budget{n: 5, percent: true} }

// ParseBudget reads a number of units such as 3, or a percentage from 0% to 100%.
func ParseBudget(text string) (Budget, error) {
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(digits)
	limit := budgetMax
	if percent {
		limit = 100
	}
	if err != nil || n < 0 || n > limit || strings.ContainsAny(digits, "+-") {
		return Budget{}, fmt.Errorf("%.80q is neither a number of units nor a percentage: write for example 3 or 5%%", text)
	}
	return Budget{n: n, percent: percent}, nil
}

// Of returns how many of so many units may be removed within a Window. A percentage is rounded
// down, but allows one unit unless it is 0%.
func (b Budget) Of(units int) int {
	switch {
	case !b.percent:
		return b.n
	case b.n == 0:
		return 0
	default:
		return max(1, b.n*units/100)
	}
}

// String returns the Budget as ParseBudget reads it.
func (b Budget) String() string {
	if b.percent {
		return fmt.Sprintf("%d%%", b.n)
	}
	return strconv.Itoa(b.n)
}

// Set makes a *Budget the value of a flag.
func (b *Budget) Set(text string) (err error) {
	*b, err = ParseBudget(text)
	return err
}

// Type returns what the help calls the argument.
func (*Budget) Type() string { return "n|n%" }
