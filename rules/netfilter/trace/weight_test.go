package trace

import "testing"

// Probabilities of chains and of virtual servers add up exactly, whatever the numbers.
func TestWeights(t *testing.T) {
	half, third := certain().times(1<<30), certain().among(3)
	for _, tc := range []struct {
		got  weight
		want Probability
	}{
		{half, "1/2"},
		{third.plus(third).plus(third), "1"},
		{half.plus(third), "5/6"},
		{half.among(6), "1/12"},
		{half.among(4).plus(half.among(4)), "1/4"},
		{third.among(4), "1/12"},
	} {
		if got := tc.got.probability(); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}
