package iptables

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"gridproxy/rules/iptables/render"
)

// Message and attribute numbers of linux/netfilter/nfnetlink_acct.h.
const (
	acctMsgNew   = 0
	acctMsgGet   = 1
	acctAttrName = 1
	acctAttrPkts = 2
)

// Counters are the packets that kube-proxy's nfacct objects have counted.
type Counters struct {
	InvalidDropped    uint64 // packets in conntrack state INVALID dropped in FORWARD
	LocalhostAccepted uint64 // packets accepted for a NodePort on a loopback address
}

// ReadCounters reads the counters of the calling thread's network namespace. It keeps no state and
// may be called from any goroutine. A counter that does not exist is 0.
func ReadCounters() (Counters, error) {
	invalid, err1 := readAcct(render.AcctInvalidDropped)
	localhost, err2 := readAcct(render.AcctLocalhostAccepted)
	return Counters{InvalidDropped: invalid, LocalhostAccepted: localhost}, errors.Join(err1, err2)
}

// ensureAcct creates the kernel objects that rules with an nfacct match refer to. A restore that
// names a missing object fails as a whole, so without both no such rule is written.
func ensureAcct() error {
	for _, name := range []string{render.AcctInvalidDropped, render.AcctLocalhostAccepted} {
		req := acctRequest(acctMsgNew, unix.NLM_F_CREATE|unix.NLM_F_ACK, name)
		_, err := req.Execute(unix.NETLINK_NETFILTER, 0)
		// EBUSY means that the object exists already.
		if err != nil && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("creating the nfacct counter %s: %w", name, err)
		}
	}
	return nil
}

func readAcct(name string) (uint64, error) {
	// The answer has the multi-part flag, but no end message follows. Without an acknowledgement
	// the library would wait for more until its timeout of a minute.
	req := acctRequest(acctMsgGet, unix.NLM_F_ACK, name)
	msgs, err := req.Execute(unix.NETLINK_NETFILTER, unix.NFNL_SUBSYS_ACCT<<8|acctMsgNew)
	if errors.Is(err, unix.ENOENT) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the nfacct counter %s: %w", name, err)
	}
	for _, msg := range msgs {
		if m, err := newNFTMessage(msg); err == nil && len(m[acctAttrPkts]) >= 8 {
			return binary.BigEndian.Uint64(m[acctAttrPkts]), nil
		}
	}
	return 0, fmt.Errorf("reading the nfacct counter %s: the kernel's answer has no packet count", name)
}

func acctRequest(msg, flags int, name string) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_ACCT<<8|msg, flags)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_UNSPEC, Version: nl.NFNETLINK_V0})
	req.AddData(nl.NewRtAttr(acctAttrName, nl.ZeroTerminated(name)))
	return req
}
