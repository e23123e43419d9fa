package iptables

import (
	"errors"
	"slices"
)

// errTooMany says that a search ended before it was over, because it had no attempts left.
var errTooMany = errors.New("no attempts left")

// attempt asks the kernel whether it refuses a group of suspects, which are named by number.
// hints are members that the answer points at; it may point at the wrong ones. An error says
// that there is no answer.
type attempt func(group []int) (refused bool, hints []int, err error)

// verdicts are what a search found out.
type verdicts struct {
	guilty []int // refused even alone
	group  []int // with an error: refused, so that one of these is guilty too; nil = not known
}

// bisect searches n suspects for all that the kernel refuses. It tries what hints point at, then
// all others together. Where hints are of no use it halves what is refused. The error is that of
// an attempt that had no answer; what is returned besides it is right.
func bisect(n int, hints []int, ask attempt) (verdicts, error) {
	var v verdicts
	suspects := make([]int, n)
	for i := range suspects {
		suspects[i] = i
	}
	cleared, err := v.follow(suspects, hints, ask)
	for err == nil {
		suspects = without(suspects, append(cleared, v.guilty...))
		if len(suspects) == 0 {
			break
		}
		var refused bool
		if refused, hints, err = ask(suspects); err != nil || !refused {
			break
		}
		before := len(v.guilty)
		if cleared, err = v.follow(suspects, hints, ask); err != nil || len(v.guilty) > before {
			continue
		}
		var more []int
		more, err = v.halve(without(suspects, cleared), ask)
		cleared = append(cleared, more...)
	}
	return v, err
}

// follow tries alone each suspect that is hinted at, until one is refused.
func (v *verdicts) follow(suspects, hints []int, ask attempt) (cleared []int, err error) {
	for _, hint := range hints {
		if !slices.Contains(suspects, hint) {
			continue
		}
		refused, _, err := ask([]int{hint})
		if err != nil {
			return cleared, err
		}
		if refused {
			v.guilty = append(v.guilty, hint)
			return cleared, nil
		}
		cleared = append(cleared, hint)
	}
	return cleared, nil
}

// halve finds one guilty suspect in a group that is refused, and says which ones are none.
func (v *verdicts) halve(group []int, ask attempt) (cleared []int, err error) {
	for len(group) > 1 {
		half := group[:len(group)/2]
		refused, _, err := ask(half)
		switch {
		case err != nil:
			v.group = group
			return cleared, err
		case refused:
			group = half
		default:
			cleared = append(cleared, half...)
			group = group[len(half):]
		}
	}
	v.guilty = append(v.guilty, group...)
	return cleared, nil
}

// without is list without some of its members.
func without(list, some []int) []int {
	drop := make(map[int]bool, len(some))
	for _, i := range some {
		drop[i] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(i int) bool { return drop[i] })
}
