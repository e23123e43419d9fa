package traffic

import (
	"errors"
	"net"
	"testing"

	"github.com/miekg/dns"
)

// TestKeptSocket: what is no DNS message is a wrong answer, and the socket is read after it and
// after a query that was refused.
func TestKeptSocket(t *testing.T) {
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	way := Way{To: server.LocalAddr().(*net.UDPAddr).AddrPort()}
	q := &DNS{Name: "echo.", Judge: func(Way, *dns.Msg) Outcome { return Local }}
	k, err := q.keptSocket(t.Context(), keptPlace{way: way})
	if err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	for written := 0; written < 2; written++ { // the second time, receive has read the refusal of the first
		if k.conn.WriteMsg(new(dns.Msg)) != nil {
			written = -1
		}
	}
	server, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(way.To))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for _, length := range []int{3, 100, 14, 100} { // the header has 12 bytes, the query fewer than 100
		go func() {
			query := make([]byte, dns.MinMsgSize)
			n, client, err := server.ReadFromUDPAddrPort(query)
			_, errWrite := server.WriteToUDPAddrPort(query[:min(n, length)], client)
			if err := errors.Join(err, errWrite); err != nil {
				t.Error(err)
			}
		}()
		want := Local
		if length < 100 {
			want = Wrong
		}
		if got := q.ask(way, k.exchange); got.Outcome != want {
			t.Errorf("an answer of at most %d bytes: %v, %v; want %v", length, got.Outcome, got.Err, want)
		}
	}
}
