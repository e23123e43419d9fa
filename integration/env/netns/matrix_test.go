package netns

import (
	"errors"
	"strings"
	"testing"
)

var (
	twoNodes = []Member{{Node: "gz-1", Unit: "guangzhou"}, {Node: "bj-1", Unit: "beijing"}}
	twoPods  = []Member{{Node: "gz-2", Unit: "guangzhou", Pod: "g", Label: "10.0.0.139"}, {Node: "bj-3", Unit: "beijing", Pod: "b", Label: "10.0.1.72"}}
)

// What leaves a unit, comes from an unknown Pod, or fails, is counted and reported.
func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		fromBeijing []string
		failed      []error
		want        Verdict
	}{
		"all at home":  {fromBeijing: []string{"b", "b"}, want: Verdict{Asked: 3}},
		"one left":     {fromBeijing: []string{"b", "g"}, want: Verdict{Asked: 3, Left: 1}},
		"unknown pod":  {fromBeijing: []string{"x"}, want: Verdict{Asked: 2, Left: 1}},
		"one failed":   {fromBeijing: []string{"b"}, failed: []error{errors.New("refused")}, want: Verdict{Asked: 3, Failed: 1}},
		"nobody asked": {want: Verdict{Asked: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMatrix(twoNodes, twoPods)
			m.Add("gz-1", []string{"g"}, nil)
			m.Add("bj-1", c.fromBeijing, c.failed)
			if got := m.Verdict(); got != c.want {
				t.Errorf("verdict %+v, want %+v", got, c.want)
			}
			if bad := c.want.Left > 0 || c.want.Failed > 0; m.Verdict().Good() == bad {
				t.Errorf("it is said that closure held: %t", bad)
			}
		})
	}
}

func TestMatrixIsBlockDiagonal(t *testing.T) {
	m := NewMatrix(twoNodes, twoPods)
	m.Add("gz-1", []string{"g", "g"}, nil)
	m.Add("bj-1", []string{"b"}, nil)
	var b strings.Builder
	m.Print(&b)
	const want = `
                                 beijing |       guangzhou
                               10.0.1.72 |      10.0.0.139
                                 on bj-3 |         on gz-2
  ---------------------------------------+-----------------
  beijing     bj-1                     1 |               .
  ---------------------------------------+-----------------
  guangzhou   gz-1                     . |               2
`
	if got := "\n" + b.String(); got != want {
		t.Errorf("printed:%swant:%s", got, want)
	}
}
