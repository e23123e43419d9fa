package dnsquery

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const queryTimeout = 900 * time.Millisecond

// answerMax is more than an answer to Ask has.
const answerMax = 4096

// ErrWrongAnswer is in the error of Ask for a server that answers, but not as it should.
var ErrWrongAnswer = errors.New("the answer is wrong")

// Ask asks the DNS server at an address of this node for a TXT record that every cluster domain
// has. It returns nil if a record comes within queryTimeout. The error wraps ErrWrongAnswer if
// another answer comes. network is "udp" or "tcp".
func Ask(ctx context.Context, network string, at netip.AddrPort, domain string) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	name, err := dnsmessage.NewName("dns-version." + domain + ".")
	if err != nil {
		return fmt.Errorf("cluster domain %q: %w", domain, err)
	}
	id := uint16(rand.Uint32()) //nolint:gosec // tells late answers apart
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: name, Type: dnsmessage.TypeTXT, Class: dnsmessage.ClassINET}},
	}
	text, err := query.Pack()
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, at.String())
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing more is read
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	answer, err := exchange(conn, network == "tcp", text)
	if err != nil {
		return err
	}
	return judgeAnswer(answer, id)
}

// exchange sends a message and returns the answer. If framed, each has its length before it.
func exchange(conn net.Conn, framed bool, text []byte) ([]byte, error) {
	if !framed {
		if _, err := conn.Write(text); err != nil {
			return nil, err
		}
		answer := make([]byte, answerMax)
		n, err := conn.Read(answer)
		return answer[:n], err
	}
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...)); err != nil { //nolint:gosec // some 40 bytes
		return nil, err
	}
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(conn, answer)
	return answer, err
}

func judgeAnswer(text []byte, id uint16) error {
	var answer dnsmessage.Message
	if err := answer.Unpack(text); err != nil {
		return fmt.Errorf("%w: reading it: %w", ErrWrongAnswer, err)
	}
	switch {
	case answer.ID != id || !answer.Response:
		return fmt.Errorf("%w: it is not for this query", ErrWrongAnswer)
	case answer.RCode != dnsmessage.RCodeSuccess || len(answer.Answers) == 0:
		return fmt.Errorf("%w: %s with %d records", ErrWrongAnswer, answer.RCode, len(answer.Answers))
	}
	return nil
}
