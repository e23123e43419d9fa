package refusal

import (
	"errors"
	"slices"
)

// errTooMany says that a search ran out of attempts.
var errTooMany = errors.New("no attempts left")

// attempt asks the kernel whether it refuses a group of suspects, given by number. hints are
// members that the answer points at; they may be wrong. An error means that there is no answer.
type attempt func(group []int) (refused bool, hints []int, err error)

// verdicts are the result of a search.
type verdicts struct {
	guilty []int // each refused alone
	group  []int // with an error: a refused group, so one of these is guilty too; nil = unknown
}

// bisect searches n suspects for all that the kernel refuses. It first tries what hints point at,
// then all others together. If no hint helps, it halves the refused group. The error is that of an
// attempt without an answer; the verdicts so far are right.
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

// follow tries each hinted suspect alone, until one is refused, which it adds to guilty. It
// returns those that were not.
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

// halve finds one guilty suspect in a refused group, and adds it to guilty. It returns the
// suspects that it cleared. After an error, the rest of the group is in v.group.
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

// without returns list without some of its members.
func without(list, some []int) []int {
	drop := make(map[int]bool, len(some))
	for _, i := range some {
		drop[i] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(i int) bool { return drop[i] })
}
