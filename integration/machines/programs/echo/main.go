// Command echo is the server in the Pods of the tests, and the client in Pods that ask. As a server it answers
// over HTTP and UDP, and where the kernel has it over SCTP, on all ports that PORTS names.
//
//	echo                      serves
//	echo get URL [COUNT]      prints COUNT answers, each on a connection of its own
//	echo udp ADDRESS MESSAGE  prints the answer to a datagram
//	echo sleep                waits until it is ended
//
// It is told who it is by NODE_NAME, POD_NAME, POD_NAMESPACE and POD_IP, as the manual's image is, and by
//
//	PORTS  "8080/tcp 8080/udp 9090/tcp"; "" is 8080/tcp 8080/udp. 9999/sctp is possible.
//	READY  "false": /healthz says so until /ready?on=true
//	GRACE  how long it goes on serving after SIGTERM; "" is that it ends at once.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch {
	case len(args) == 0:
		return serve(ctx)
	case len(args) == 2 && args[0] == "get":
		return get(ctx, args[1])
	case len(args) == 3 && args[0] == "get":
		return getMany(ctx, args[1], args[2])
	case len(args) == 3 && args[0] == "udp":
		return udp(args[1], args[2])
	case len(args) == 1 && args[0] == "sleep":
		<-ctx.Done()
		return nil
	}
	return errors.New("usage: echo, echo get URL [COUNT], echo udp ADDRESS MESSAGE, echo sleep")
}

func serve(ctx context.Context) error {
	grace, err := time.ParseDuration(orElse(os.Getenv("GRACE"), "0s"))
	if err != nil {
		return fmt.Errorf("reading GRACE, which is a duration like 30s: %w", err)
	}
	s := newServer(os.Getenv)
	if err := s.listen(orElse(os.Getenv("PORTS"), "8080/tcp 8080/udp")); err != nil {
		return err
	}
	<-ctx.Done()
	time.Sleep(grace)
	return nil
}

const timeout = 5 * time.Second

func get(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: %s", url, answer.Status)
	}
	return nil
}

// getMany goes on after what failed, and says at the end how many did.
func getMany(ctx context.Context, url, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return fmt.Errorf("reading COUNT: %w", err)
	}
	failed := 0
	for range n {
		if err := get(ctx, url); err != nil {
			failed++
			fmt.Fprintln(os.Stderr, err)
		}
		http.DefaultClient.CloseIdleConnections()
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d requests failed", failed, n)
	}
	return nil
}

func udp(address, message string) error {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return fmt.Errorf("asking %s: %w", address, err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return fmt.Errorf("setting a deadline: %w", err)
	}
	if _, err := io.WriteString(conn, message); err != nil {
		return fmt.Errorf("asking %s: %w", address, err)
	}
	answer := make([]byte, datagram)
	n, err := conn.Read(answer)
	if err != nil {
		return fmt.Errorf("hearing from %s: %w", address, err)
	}
	fmt.Println(string(answer[:n]))
	return nil
}

func orElse(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
