package iptables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// nftFamily returns the family as nft(8) names it.
func nftFamily(f netfilter.Family) string {
	if f == netfilter.IPv6 {
		return "ip6"
	}
	return "ip"
}

// nftNumber returns the number of the family in nf_tables messages.
func nftNumber(f netfilter.Family) uint8 {
	if f == netfilter.IPv6 {
		return unix.NFPROTO_IPV6
	}
	return unix.NFPROTO_IPV4
}

// nftTables returns the nftables tables of one family in the calling thread's network
// namespace. It starts no process. It returns an error if the kernel has no nf_tables: see
// noNFTables.
func nftTables(f netfilter.Family) ([]string, error) {
	all := func(nftMessage) bool { return true }
	return nftNames(unix.NFT_MSG_GETTABLE, unix.NFT_MSG_NEWTABLE, f, unix.NFTA_TABLE_NAME, all)
}

// nftChains returns the chains of one nftables table, whatever rules it has. A missing table has
// none.
func nftChains(f netfilter.Family, table string) ([]string, error) {
	in := func(m nftMessage) bool { return m.text(unix.NFTA_CHAIN_TABLE) == table }
	return nftNames(unix.NFT_MSG_GETCHAIN, unix.NFT_MSG_NEWCHAIN, f, unix.NFTA_CHAIN_NAME, in)
}

// nftNames returns the names, in attribute kind, of the objects of a family that keep selects.
func nftNames(ask, answer int, f netfilter.Family, kind uint16, keep func(nftMessage) bool) (names []string, err error) {
	err = nftDump(ask, answer, f, "", func() { names = nil }, func(m nftMessage) bool {
		if keep(m) {
			names = append(names, m.text(kind))
		}
		return true
	})
	return names, err
}

// noNFTables reports whether an error of nftTables means that the kernel has no nf_tables.
func noNFTables(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP)
}

// nativeRule is a rule that keeps iptables-nft-save from printing its table.
type nativeRule struct {
	chain      string
	handle     uint64 // as `nft -a list table` prints it
	expression string // the kernel's name of the expression that iptables does not know
}

// knownExpressions are those that iptables-nft 1.8.9 prints in all forms.
var knownExpressions = [...]string{
	"match", "target", "payload", "meta", "cmp", "bitwise", "counter", "immediate", "lookup", "range",
}

// sometimesKnown are those that iptables-nft prints in some forms.
var sometimesKnown = [...]string{"limit", "log"}

// findNativeRule finds the first rule of a table that iptables-nft does not print. It returns a
// rule that is printed in some forms only if there is no other.
func findNativeRule(f netfilter.Family, table string) (rule nativeRule, found bool, err error) {
	var certain, possible []nativeRule
	err = nftDump(unix.NFT_MSG_GETRULE, unix.NFT_MSG_NEWRULE, f, table,
		func() { certain, possible = nil, nil },
		func(message nftMessage) bool {
			if message.text(unix.NFTA_RULE_TABLE) != table {
				return true
			}
			r := nativeRule{chain: message.text(unix.NFTA_RULE_CHAIN), handle: message.number(unix.NFTA_RULE_HANDLE)}
			for _, name := range message.expressions() {
				r.expression = name
				switch {
				case slices.Contains(knownExpressions[:], name):
				case slices.Contains(sometimesKnown[:], name):
					if len(possible) == 0 {
						possible = append(possible, r)
					}
				default:
					certain = append(certain, r)
					return false
				}
			}
			return true
		})
	if all := slices.Concat(certain, possible); len(all) > 0 {
		return all[0], true, err
	}
	return nativeRule{}, false, err
}

// nftDump visits the kernel's answers to one question about a family; table "" = all tables. It
// calls begin first, and again whenever it starts over. visit = false ends it.
func nftDump(ask, answer int, f netfilter.Family, table string, begin func(), visit func(nftMessage) bool) error {
	for try := 1; ; try++ {
		begin()
		req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|ask, unix.NLM_F_DUMP)
		req.AddData(&nl.Nfgenmsg{NfgenFamily: nftNumber(f), Version: nl.NFNETLINK_V0})
		if table != "" {
			req.AddData(nl.NewRtAttr(unix.NFTA_RULE_TABLE, nl.ZeroTerminated(table)))
		}
		var parseErr error
		ended := false
		err := req.ExecuteIter(unix.NETLINK_NETFILTER, uint16(unix.NFNL_SUBSYS_NFTABLES<<8|answer), func(b []byte) bool {
			message, err := newNFTMessage(b)
			if err != nil {
				parseErr = err
				return false
			}
			ended = !visit(message)
			return !ended
		})
		switch {
		case errors.Is(err, nl.ErrDumpInterrupted) && ended:
			return nil
		case errors.Is(err, nl.ErrDumpInterrupted) && try < dumpTriesMax:
			continue
		}
		if err == nil {
			err = parseErr
		}
		if err != nil {
			return fmt.Errorf("asking the kernel for nftables objects of family %s: %w", nftFamily(f), err)
		}
		return nil
	}
}

// nftMessage are the attributes of one netfilter message, by number.
type nftMessage map[uint16][]byte

func newNFTMessage(b []byte) (nftMessage, error) {
	if len(b) < nl.SizeofNfgenmsg {
		return nil, errors.New("a message of the kernel is too short")
	}
	return nftAttributes(b[nl.SizeofNfgenmsg:])
}

func nftAttributes(b []byte) (nftMessage, error) {
	attrs, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil, err
	}
	m := nftMessage{}
	for _, a := range attrs {
		m[a.Attr.Type&nl.NLA_TYPE_MASK] = a.Value
	}
	return m, nil
}

func (m nftMessage) text(kind uint16) string { return unix.ByteSliceToString(m[kind]) }

func (m nftMessage) number(kind uint16) uint64 {
	if b := m[kind]; len(b) == 8 {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// expressions returns the names of a rule's expressions, in order.
func (m nftMessage) expressions() []string {
	list, err := nl.ParseRouteAttr(m[unix.NFTA_RULE_EXPRESSIONS])
	if err != nil {
		return nil
	}
	var names []string
	for _, element := range list {
		if e, err := nftAttributes(element.Value); err == nil {
			names = append(names, e.text(unix.NFTA_EXPR_NAME))
		}
	}
	return names
}

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
