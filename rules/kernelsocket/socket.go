package kernelsocket

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// AnswerLimit is how long the kernel may take for one message. Usually it takes less than a second,
// even if another process keeps the kernel's lock of links and addresses busy.
const AnswerLimit = 10 * time.Second

// Open opens a netlink socket with a limit for every message: the library sets none.
func Open(family int) (*netlink.Handle, error) {
	h, err := netlink.NewHandle(family)
	if err != nil {
		return nil, err
	}
	if err := h.SetSocketTimeout(AnswerLimit); err != nil {
		h.Close()
		return nil, fmt.Errorf("limiting how long it waits: %w", err)
	}
	return h, nil
}

// HostAddr returns an address with the longest prefix, to add to a link or to delete there. It
// can be used immediately, without duplicate address detection.
func HostAddr(a netip.Addr) *netlink.Addr {
	out := &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}}
	if a.Is6() {
		out.Flags = unix.IFA_F_NODAD
	}
	return out
}

// Guarded runs a call of netlink's ipset functions. They panic on an error that is not a number of
// the kernel's, for example if their socket is closed meanwhile.
func Guarded(call func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			var wrong *runtime.TypeAssertionError
			if e, isErr := r.(error); !isErr || !errors.As(e, &wrong) {
				panic(r)
			}
			err = errors.New("netlink failed, and its library does not say how")
		}
	}()
	return call()
}
