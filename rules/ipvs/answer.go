package ipvs

import (
	"errors"
	"fmt"
	"time"

	"github.com/moby/ipvs"
	"golang.org/x/sys/unix"
)

// dumpLimit is kernelsocket.AnswerLimit for a whole list of IPVS, which is many messages.
const dumpLimit = time.Minute

// errNoAnswer reports that the kernel did not answer within a limit. Other messages would wait as
// long, so the sync ends.
var errNoAnswer = errors.New("the kernel did not answer in time; look for the cause with dmesg, and restart the node if it stays so")

// ask runs one call of moby/ipvs, which waits for its answer without limit. After limit it closes
// the socket, which ends the call, and opens another one in the calling thread's network namespace.
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

// openAgain replaces a closed socket. It keeps its error, so that the next call tries again.
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
	return errors.Is(err, errNoAnswer) || errors.Is(err, unix.EAGAIN) // of netlink sockets
}
