package refusal

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// kernelOf refuses every group with a guilty member, and counts how often it is asked.
func kernelOf(guilty []int, hint func(group []int) []int, asked *int, limit int) attempt {
	return func(group []int) (bool, []int, error) {
		if *asked == limit {
			return false, nil, errTooMany
		}
		*asked++
		refused := slices.ContainsFunc(group, func(i int) bool { return slices.Contains(guilty, i) })
		return refused, hint(group), nil
	}
}

func noHint([]int) []int { return nil }

// The search finds everything that is refused and nothing else, whatever the hints.
func TestBisectFindsAllAndOnlyTheGuilty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(rt, "suspects")
		number := rapid.IntRange(-1, n)
		guilty := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, min(n, 8), rapid.ID).Draw(rt, "guilty")
		hints := rapid.SliceOfN(number, 0, 3)
		asked := 0
		v, err := bisect(n, hints.Draw(rt, "hints"), kernelOf(guilty, func([]int) []int { return hints.Draw(rt, "more hints") }, &asked, -1))
		found := slices.Sorted(slices.Values(v.guilty))
		slices.Sort(guilty)
		if err != nil || !slices.Equal(found, guilty) {
			rt.Fatalf("found %v, %v; want %v", found, err, guilty)
		}
	})
}

// The search finds one among 5,000 within the attempts of a sync, without any hint.
func TestBisectFindsOneOfManyInTime(t *testing.T) {
	for _, g := range []int{0, 1, 2499, 2500, 4998, 4999} {
		asked := 0
		v, _ := bisect(5000, nil, kernelOf([]int{g}, noHint, &asked, searchAttempts))
		if !slices.Equal(v.guilty, []int{g}) {
			t.Errorf("refused is %d, found %v in %d attempts", g, v, asked)
		}
	}
}

// A right hint costs one attempt. One more shows that nothing else is refused.
func TestBisectFollowsAHint(t *testing.T) {
	asked := 0
	v, err := bisect(5000, []int{17}, kernelOf([]int{17}, noHint, &asked, searchAttempts))
	if err != nil || !slices.Equal(v.guilty, []int{17}) || asked != 2 {
		t.Errorf("found %v, %v in %d attempts; want 17 in 2", v, err, asked)
	}
}

// A search that runs out of attempts keeps its result, so that the next one gets further.
func TestBisectKeepsWhatItFound(t *testing.T) {
	asked := 0
	v, err := bisect(5000, nil, kernelOf([]int{100, 4000}, noHint, &asked, 18))
	if !slices.Equal(v.guilty, []int{100}) || !slices.Contains(v.group, 4000) || len(v.group) > 1300 || !errors.Is(err, errTooMany) {
		t.Errorf("found %v, %v; want 100, a group with 4000, and an error", v, err)
	}
}
