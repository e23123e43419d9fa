package iptables

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gridproxy/rules/netfilter"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// generation asks the kernel for the generation of the nftables ruleset in the calling thread's
// network namespace. Every committed transaction of any process raises it by one, and nothing else
// does. So an equal generation means an equal ruleset.
func generation() (uint32, error) {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETGEN, 0)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_UNSPEC, Version: nl.NFNETLINK_V0})
	msgs, err := req.Execute(unix.NETLINK_NETFILTER, unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN)
	if err != nil {
		return 0, fmt.Errorf("asking the kernel for the nftables generation: %w", err)
	}
	for _, msg := range msgs {
		if m, err := newNFTMessage(msg); err == nil && len(m[unix.NFTA_GEN_ID]) >= 4 {
			return binary.BigEndian.Uint32(m[unix.NFTA_GEN_ID]), nil
		}
	}
	return 0, errors.New("asking the kernel for the nftables generation: the answer has none")
}

// generation returns the kernel's generation; false = this variant has none, or it cannot be
// read.
func (k *kernel) generation() (gen uint32, known bool) {
	if k.variant != netfilter.VariantNFT {
		return 0, false
	}
	gen, err := generation()
	return gen, err == nil
}

// watermark is the generation at which the kernel surely held what we wrote, if known.
type watermark struct {
	gen   uint32
	known bool
}

// holds reports whether no process has written since.
func (w watermark) holds(now uint32) bool { return w.known && w.gen == now }

// advance returns the watermark after commits of our own between two generations. It is unknown
// if another process committed too.
func (w watermark) advance(before, after, commits uint32) watermark {
	if !w.holds(before) || after-before != commits {
		return watermark{}
	}
	return watermark{gen: after, known: true}
}
