package host

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"gridproxy/topology/regularfile"
)

const onlineCPUsFile = "sys/devices/system/cpu/online"

// onlineCPUs returns how many CPUs of the machine are online, as kube-proxy counts them. The
// conntrack table is the whole machine's, so the CPUs that this process may use are only the
// fallback: a static CPU policy gives a container few of many.
func (m Machine) onlineCPUs() int {
	if text, err := regularfile.Read(m.path(onlineCPUsFile), maxSettingBytes); err == nil {
		if n, err := countCPUs(strings.TrimSpace(string(text))); err == nil {
			return n
		}
	}
	return runtime.NumCPU()
}

// countCPUs counts the CPUs in a list of the kernel such as 0-3,8,10-11. A list that is empty or
// not in ascending order is an error.
func countCPUs(list string) (int, error) {
	count, next := 0, 0
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 31)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(to, 10, 31)
		}
		if err != nil || int(first) < next || last < first {
			return 0, fmt.Errorf("%q in %q is not a CPU or a range of CPUs in ascending order", part, list)
		}
		count += int(last - first + 1)
		next = int(last) + 1
	}
	return count, nil
}
