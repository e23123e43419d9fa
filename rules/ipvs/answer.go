package ipvs

import (
	"errors"
	"fmt"
	"time"

	"github.com/moby/ipvs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// answerLimit is how long the kernel may take for one message. A good answer takes less than a
// second, also where another process keeps the kernel's lock of links and addresses busy.
const answerLimit = 10 * time.Second

// dumpLimit is answerLimit for a whole list of IPVS, which is many messages.
const dumpLimit = time.Minute

// errNoAnswer says that the kernel did not answer within a limit. Other messages would wait as
// long, so the Sync ends.
var errNoAnswer = errors.New("the kernel did not answer in time; look for the cause with dmesg, and restart the node if it stays so")

// openSocket opens a netlink socket on which every message has a limit: the library sets none.
func openSocket(family int) (*netlink.Handle, error) {
	h, err := netlink.NewHandle(family)
	if err != nil {
		return nil, err
	}
	if err := h.SetSocketTimeout(answerLimit); err != nil {
		h.Close()
		return nil, fmt.Errorf("limiting how long it waits: %w", err)
	}
	return h, nil
}

// ask runs one call of moby/ipvs. That waits for its answer without limit, and returns when its
// socket is closed: another one is opened then, in the network namespace of the calling thread.
func (k *kernel) ask(limit time.Duration, call func(*ipvs.Handle) error) error {
	if k.reopen != nil {
		if err := k.openAgain(); err != nil {
			return errors.Join(errNoAnswer, err)
		}
	}
	late := time.AfterFunc(limit, k.servers.Close)
	err := call(k.servers)
	if late.Stop() {
		return err
	}
	return errors.Join(errNoAnswer, err, k.openAgain())
}

// openAgain replaces a socket that was closed. What it fails with is kept, so that the next call
// tries again.
func (k *kernel) openAgain() error {
	fresh, err := ipvs.New("")
	if err != nil {
		k.reopen = fmt.Errorf("opening a netlink socket for IPVS: %w", err)
		return k.reopen
	}
	k.servers, k.reopen = fresh, nil
	return nil
}

// hangs reports whether an error says that the kernel did not answer.
func hangs(err error) bool {
	return errors.Is(err, errNoAnswer) || errors.Is(err, unix.EAGAIN) // the latter is netlink's word
}
