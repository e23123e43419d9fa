package suites

import (
	"fmt"
	"time"
)

// Machine is what a run measured about the machine that it ran on.
type Machine struct {
	Cores        int
	Took         time.Duration // of the run, or of this part of it
	Used         time.Duration // processor time of its suites
	Waited       time.Duration // at least one task waited for a core; 0 = the kernel does not report it
	ProgramStart time.Duration // of a small program, while nothing else ran; 0 = not measured
	NewChain     time.Duration // of iptables-nft -N, while nothing else ran; 0 = not measured
}

// Calibration returns the line about what starting programs costs, which tells how far figures of
// two machines can be compared.
func (m Machine) Calibration() string {
	return fmt.Sprintf("Calibration: a small program takes %s, iptables-nft -N takes %s",
		milliseconds(m.ProgramStart), milliseconds(m.NewChain))
}

func milliseconds(d time.Duration) string {
	if d == 0 {
		return "an unknown time (not installed)"
	}
	return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
}

// String returns the lines about the machine during the run.
func (m Machine) String() string {
	waited := "/proc/pressure/cpu is missing: start the kernel with psi=1 to see how long tasks waited for a core"
	if m.Waited > 0 {
		waited = fmt.Sprintf("tasks waited for a core %s of the time (/proc/pressure/cpu)", percent(m.Waited, m.Took))
	}
	return fmt.Sprintf("The machine: %d cores, %s used by suites, %s\n%s\n", m.Cores,
		percent(m.Used, m.Took*time.Duration(m.Cores)), waited, m.Calibration())
}

func percent(part, whole time.Duration) string {
	if whole <= 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}

// ParsePressure returns how long at least one task has waited for a core since the machine started,
// from the text of /proc/pressure/cpu; 0 if the text has no such figure.
func ParsePressure(text string) time.Duration {
	var share float64
	var micro int64
	if _, err := fmt.Sscanf(text, "some avg10=%f avg60=%f avg300=%f total=%d", &share, &share, &share, &micro); err != nil {
		return 0
	}
	return time.Duration(micro) * time.Microsecond
}
