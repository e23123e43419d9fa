package main

import (
	"errors"
	"strings"
	"testing"

	"gridproxy/integration/lab"
)

func answersOf(pods ...string) (answers []lab.Answer) {
	for _, p := range pods {
		answers = append(answers, lab.Answer{Pod: p})
	}
	return answers
}

var (
	twoNodes = []member{{node: "gz-1", unit: "guangzhou"}, {node: "bj-1", unit: "beijing"}}
	twoPods  = []member{{node: "gz-2", unit: "guangzhou", pod: "g", label: "10.0.0.139"}, {node: "bj-3", unit: "beijing", pod: "b", label: "10.0.1.72"}}
)

// What leaves a unit, comes from a Pod that nobody knows, or fails, is counted, and makes
// the demo fail.
func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		fromBeijing []string
		failed      []error
		want        verdict
	}{
		"all at home":  {fromBeijing: []string{"b", "b"}, want: verdict{asked: 3}},
		"one left":     {fromBeijing: []string{"b", "g"}, want: verdict{asked: 3, left: 1}},
		"unknown pod":  {fromBeijing: []string{"x"}, want: verdict{asked: 2, left: 1}},
		"one failed":   {fromBeijing: []string{"b"}, failed: []error{errors.New("refused")}, want: verdict{asked: 3, failed: 1}},
		"nobody asked": {want: verdict{asked: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMatrix(twoNodes, twoPods)
			m.add("gz-1", answersOf("g"), nil)
			m.add("bj-1", answersOf(c.fromBeijing...), c.failed)
			if got := m.verdict(); got != c.want {
				t.Errorf("verdict %+v, want %+v", got, c.want)
			}
			bad := c.want.left > 0 || c.want.failed > 0
			if err := conclude(&strings.Builder{}, m.verdict(), verdict{}); (err != nil) != bad {
				t.Errorf("the demo ends with %v", err)
			}
		})
	}
}

func TestMatrixIsBlockDiagonal(t *testing.T) {
	m := newMatrix(twoNodes, twoPods)
	m.add("gz-1", answersOf("g", "g"), nil)
	m.add("bj-1", answersOf("b"), nil)
	var b strings.Builder
	m.print(&b)
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

func TestWrap(t *testing.T) {
	long := "-A KUBE-SVC-COY5MDFFORWDI6KK -m comment --comment \"default/servicegrid-demo-svc -> 10.0.0.70:8080\"" +
		" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-RGX5HKSX4VMSG6MC"
	wrapped := wrap(long, 96)
	for line := range strings.Lines(wrapped) {
		if len(strings.TrimRight(line, "\n")) > 96 {
			t.Errorf("line of %d columns: %q", len(line), line)
		}
	}
	if !strings.Contains(wrapped, "\n") {
		t.Errorf("a rule of %d columns is one line", len(long))
	}
	if got := strings.Join(strings.Fields(wrapped), " "); got != long {
		t.Errorf("the rule changed: %q", got)
	}
}
