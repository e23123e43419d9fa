package stream

import (
	"errors"
	"testing"
	"time"
)

// What was answered while the slowest was under way tells a connection whose packets were lost from a
// machine that stood still.
func TestMeanwhile(t *testing.T) {
	begin := time.Now()
	at := func(begins, took time.Duration, err error) Attempt {
		return Attempt{Begin: begin.Add(begins), Took: took, Err: err}
	}
	slow := at(0, 10*time.Second, nil)
	for _, test := range []struct {
		name     string
		attempts []Attempt
		want     float64
	}{
		{"nothing else", nil, 0},
		{"before, after and across", []Attempt{at(-2, 1, nil), at(11*time.Second, 1, nil), at(9*time.Second, 2*time.Second, nil)}, 0},
		{"meanwhile", []Attempt{at(1, 1, nil), at(2, 1, nil), at(3, 1, nil)}, 1.5},
		{"lost meanwhile", []Attempt{at(1, 1, errors.New("refused"))}, 0},
	} {
		traffic := Traffic{Calls: &Calls{ways: make([]Way, 2), attempts: append(test.attempts, slow)}}
		if a := traffic.between("", time.Time{}, begin.Add(time.Hour)); a.Meanwhile != test.want || a.Slowest != slow.Took {
			t.Errorf("%s: %v on each way, the slowest took %s; want %v and %s", test.name, a.Meanwhile, a.Slowest, test.want, slow.Took)
		}
	}
}
