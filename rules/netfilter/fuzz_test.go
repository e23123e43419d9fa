package netfilter

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzScan: no text makes the parser panic, and every parsed Rule is written and read back as the
// same Rule.
func FuzzScan(f *testing.F) {
	f.Add([]byte(savedText), false)
	f.Add([]byte(inNAT("-d fd00::1/128 -p tcp -m tcp --dport 80 -j DNAT --to-destination [fd00::1]:80")), true)
	f.Add([]byte(inNAT(`-m comment --comment "a \"b\" \\ c" -m statistic --mode random --probability 0.33333333349 -j MINE`)), false)
	f.Add([]byte(inNAT("-m recent --rcheck --seconds 10800 --reap --name MINE --mask 255.255.255.255 --rsource -j MINE")), false)
	f.Add([]byte(inNAT("! -i veth+ -m mark ! --mark 0x4000/0x4000 -j MARK --set-xmark 0x4000/0x0")), false)
	f.Add([]byte(inNAT("! -s 0.0.0.0/0 -m conntrack ! --ctstate DNAT,NEW -m addrtype --src-type LOCAL -j REJECT")), false)
	f.Add([]byte(inNAT("-m set --match-set KUBE-LOOP-BACK dst,dst,src -m ipvs --ipvs -j MASQUERADE --random-fully")), true)
	f.Fuzz(func(t *testing.T, text []byte, ipv6 bool) {
		family := IPv4
		if ipv6 {
			family = IPv6
		}
		s, err := Parse(bytes.NewReader(text), family)
		if err != nil {
			return
		}
		for table := range s.Tables {
			for _, c := range s.Tables[table].Chains {
				for _, r := range c.Rules {
					reread(t, s.Family, Table(table), r)
				}
			}
		}
	})
}

func reread(t *testing.T, f Family, table Table, r SavedRule) {
	if r.Foreign {
		if r.Rule != (Rule{}) {
			t.Fatalf("%q is foreign and %+v too", r.Text, r.Rule)
		}
		return
	}
	p := newParser(f)
	p.declare(table, r.Rule.Jump)
	written := string(r.Rule.Append(nil, f))
	if strings.Contains(written, "\n") {
		t.Fatalf("%q becomes more than a line: %q", r.Text, written)
	}
	again, ok := p.rule(table, written)
	if !ok || !again.Same(r.Rule) || again.NFAcct != r.Rule.NFAcct {
		t.Fatalf("%q is read as\n%+v\nwritten as %q\nread as\n%+v", r.Text, r.Rule, written, again)
	}
}
