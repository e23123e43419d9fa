package suites

import (
	"strings"
	"testing"
	"time"
)

func TestParsePressure(t *testing.T) {
	const text = "some avg10=74.93 avg60=50.17 avg300=19.27 total=69991673\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"
	if got := ParsePressure(text); got != 69991673*time.Microsecond {
		t.Error(got)
	}
	for _, wrong := range []string{"", "full total=5\n", "some avg10=1\n", "some avg10=0.00 avg60=0.00 avg300=0.00 total=x\n"} {
		if got := ParsePressure(wrong); got != 0 {
			t.Errorf("%q: %s", wrong, got)
		}
	}
}

func TestMachine(t *testing.T) {
	m := Machine{Cores: 2, Took: time.Minute, Used: 90 * time.Second, Waited: 6 * time.Second, ProgramStart: 1200 * time.Microsecond, NewChain: 6 * time.Millisecond}
	const want = "The machine: 2 cores, 75 % used by suites, tasks waited for a core 10 % of the time (/proc/pressure/cpu)\n" +
		"Calibration: a small program takes 1.2 ms, iptables-nft -N takes 6.0 ms\n"
	if got := m.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (Machine{}).String(); !strings.Contains(got, "psi=1") || !strings.Contains(got, "not installed") {
		t.Errorf("of an unknown machine: %q", got)
	}
}
