package ipvs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"gridproxy/rules/netfilter"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

type listedSet struct {
	kind    string
	count   int // of entries, as the kernel counts them; 0 = it has none, or does not count
	entries []Entry
}

// readSet reads one set with its entries; false = no set has this name. The netlink library has
// such a function too, but it logs every attribute that it does not know, and sets that ipset(8)
// created are full of them.
func readSet(name string) (listedSet, bool, error) {
	req := nl.NewNetlinkRequest(nl.IPSET_CMD_LIST|unix.NFNL_SUBSYS_IPSET<<8, nl.GetIpsetFlags(nl.IPSET_CMD_LIST))
	req.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_NETLINK, Version: nl.NFNETLINK_V0})
	req.AddData(nl.NewRtAttr(nl.IPSET_ATTR_PROTOCOL, nl.Uint8Attr(nl.IPSET_PROTOCOL)))
	req.AddData(nl.NewRtAttr(nl.IPSET_ATTR_SETNAME, nl.ZeroTerminated(name)))
	for try := 1; ; try++ {
		messages, err := req.Execute(unix.NETLINK_NETFILTER, 0)
		switch {
		case errors.Is(err, unix.ENOENT):
			return listedSet{}, false, nil
		case errors.Is(err, netlink.ErrDumpInterrupted) && try < linkTriesMax:
			continue
		case err != nil:
			return listedSet{}, false, fmt.Errorf("listing ipset %s: %w", name, err)
		}
		s, err := parseSet(name, messages)
		if err != nil {
			return listedSet{}, false, fmt.Errorf("listing ipset %s: %w", name, err)
		}
		if s.count == 0 || s.count == len(s.entries) || try >= linkTriesMax {
			return s, true, nil
		} // else it changed after the kernel had counted
	}
}

// parseSet reads the messages about a set: the first has its type, and each has some entries.
func parseSet(name string, messages [][]byte) (listedSet, error) {
	var s listedSet
	for _, m := range messages {
		if len(m) < nl.SizeofNfgenmsg {
			return listedSet{}, errors.New("a message from the kernel is too short")
		}
		err := eachAttribute(m[nl.SizeofNfgenmsg:], func(kind uint16, value []byte) error {
			switch kind {
			case nl.IPSET_ATTR_TYPENAME:
				s.kind = nl.BytesToString(value)
			case nl.IPSET_ATTR_DATA:
				return s.parseHeader(value)
			case nl.IPSET_ATTR_ADT:
				return eachAttribute(value, func(_ uint16, entry []byte) error {
					e, err := parseEntry(entry)
					e.Set = name
					s.entries = append(s.entries, e)
					return err
				})
			}
			return nil
		})
		if err != nil {
			return listedSet{}, err
		}
	}
	return s, nil
}

func (s *listedSet) parseHeader(b []byte) error {
	return eachAttribute(b, func(kind uint16, value []byte) error {
		if kind == nl.IPSET_ATTR_ELEMENTS && len(value) == 4 {
			s.count = int(binary.BigEndian.Uint32(value))
		}
		return nil
	})
}

// parseEntry reads an entry. It leaves out what our entries never have, such as a timeout.
func parseEntry(b []byte) (Entry, error) {
	var e Entry
	var addr netip.Addr
	bits := -1
	err := eachAttribute(b, func(kind uint16, value []byte) (err error) {
		switch {
		case kind == nl.IPSET_ATTR_IP:
			addr, err = parseSetAddr(value)
		case kind == nl.IPSET_ATTR_IP2:
			e.Peer, err = parseSetAddr(value)
		case kind == nl.IPSET_ATTR_CIDR && len(value) == 1:
			bits = int(value[0])
		case kind == nl.IPSET_ATTR_PROTO && len(value) == 1:
			e.Proto = netfilter.Proto(value[0])
		case kind == nl.IPSET_ATTR_PORT && len(value) == 2:
			e.Port = binary.BigEndian.Uint16(value)
		}
		return err
	})
	if addr.IsValid() {
		if bits < 0 {
			bits = addr.BitLen()
		}
		e.Net = netip.PrefixFrom(addr, bits)
	}
	return e, err
}

func parseSetAddr(b []byte) (addr netip.Addr, err error) {
	err = eachAttribute(b, func(_ uint16, value []byte) error {
		a, ok := netip.AddrFromSlice(value)
		if !ok {
			return fmt.Errorf("an address has %d bytes", len(value))
		}
		addr = a
		return nil
	})
	return addr, err
}

// eachAttribute visits netlink attributes until visit fails.
func eachAttribute(b []byte, visit func(kind uint16, value []byte) error) error {
	attrs, err := nl.ParseRouteAttr(b)
	if err != nil {
		return err
	}
	for _, a := range attrs {
		if err := visit(a.Attr.Type&nl.NLA_TYPE_MASK, a.Value); err != nil {
			return err
		}
	}
	return nil
}
