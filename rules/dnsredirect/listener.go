package dnsredirect

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Listener is a socket that takes queries at an address of the server.
type Listener struct {
	Network string // udp or tcp
	At      netip.AddrPort
	PID     int    // of a process that has it open; 0 = this process cannot see it
	Program string // its name; "" if PID is 0
}

// listen is the state of a TCP socket that listens, as the kernel prints it.
const listen = "0A"

// ReadListeners reads which sockets of this network namespace take queries at some addresses. The
// processes that probably have them are looked at first; if they have all, no other is.
func ReadListeners(addrs []netip.Addr, probably []int) ([]Listener, error) {
	var found []socketRow
	for _, table := range []string{"udp", "udp6", "tcp", "tcp6"} {
		rows, err := readTable("/proc/thread-self/net/"+table, strings.TrimSuffix(table, "6"), addrs)
		if errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, rows...)
	}
	return listenersOf(found, probably), nil
}

type socketRow struct {
	listener Listener
	link     string // what a file descriptor of it leads to
}

func readTable(path, network string, addrs []netip.Addr) ([]socketRow, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("looking for listeners: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	rows, err := parseTable(file, network, addrs)
	if err != nil {
		return nil, fmt.Errorf("looking for listeners in %s: %w", path, err)
	}
	return rows, nil
}

// parseTable picks the listeners at some addresses from a table. The kernel prints TCP sockets that
// listen before the connections, which may be many.
func parseTable(table io.Reader, network string, addrs []netip.Addr) (found []socketRow, err error) {
	lines := bufio.NewScanner(table)
	lines.Scan() // the names of the columns
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 {
			return nil, fmt.Errorf("%q has %d columns", lines.Text(), len(fields))
		}
		if network == "tcp" && fields[3] != listen {
			break
		}
		at, err := parseEndpoint(fields[1])
		if err != nil {
			return nil, err
		}
		if at.Port() == Port && slices.Contains(addrs, at.Addr()) {
			found = append(found, socketRow{Listener{Network: network, At: at}, "socket:[" + fields[9] + "]"})
		}
	}
	return found, lines.Err()
}

// parseEndpoint reads an address as the kernel prints it: 32-bit words of this machine, then the
// port.
func parseEndpoint(text string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if err = errors.Join(err, portErr); err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is no address: %w", text, err)
	}
	for word := range slices.Chunk(raw, 4) {
		if len(word) == 4 {
			binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
		}
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("%q is no address", text)
	}
	return netip.AddrPortFrom(addr, uint16(number)), nil
}

// listenersOf adds the processes that hold the sockets. It tries those in probably first.
func listenersOf(found []socketRow, probably []int) []Listener {
	open := map[string]int{} // sockets whose process is not known yet; then their processes
	for _, row := range found {
		open[row.link] = 0
	}
	missing := len(open)
	look := func(pid int) {
		for _, link := range socketsOf(pid) {
			if owner, wanted := open[link]; wanted && owner == 0 {
				open[link] = pid
				missing--
			}
		}
	}
	for _, pid := range probably {
		look(pid)
	}
	if missing > 0 {
		all, _ := os.ReadDir("/proc") // without it, none is known
		for _, e := range all {
			if pid, err := strconv.Atoi(e.Name()); err == nil && missing > 0 {
				look(pid)
			}
		}
	}
	var out []Listener
	for _, row := range found {
		l := row.listener
		if l.PID = open[row.link]; l.PID > 0 {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", l.PID)) // of one that has ended: nothing
			l.Program = strings.TrimSpace(string(name))
		}
		out = append(out, l)
	}
	return out
}

// socketsOf returns the links of a process' sockets; nil if they cannot be read.
func socketsOf(pid int) (links []string) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	all, _ := os.ReadDir(dir)
	for _, e := range all {
		if link, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && strings.HasPrefix(link, "socket:") {
			links = append(links, link)
		}
	}
	return links
}
