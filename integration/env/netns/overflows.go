package netns

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Overflows is how many UDP datagrams the namespace has dropped because a program did not read them
// in time. That is so on a machine that has too much to do.
func (n *Namespace) Overflows() (dropped int, err error) {
	err = n.Do(func() error {
		for _, table := range []string{"snmp", "snmp6"} {
			text, err := os.ReadFile("/proc/thread-self/net/" + table)
			if err != nil {
				return fmt.Errorf("reading what was dropped in %s: %w", n.Name, err)
			}
			dropped += rcvbufErrors(string(text))
		}
		return nil
	})
	return dropped, err
}

// rcvbufErrors reads a counter of the kernel. In snmp, the names of columns are in the row before.
func rcvbufErrors(table string) (n int) {
	var names []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && fields[0] == "Udp6RcvbufErrors":
			n, _ = strconv.Atoi(fields[1])
		case len(fields) == 0 || fields[0] != "Udp:":
		case names == nil:
			names = fields
		default:
			if i := slices.Index(names, "RcvbufErrors"); i >= 0 && i < len(fields) {
				n, _ = strconv.Atoi(fields[i])
			}
		}
	}
	return n
}
