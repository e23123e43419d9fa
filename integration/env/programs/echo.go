package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// echo is the server in the Pods of the tests, and a client for a look from inside of them. As a
// server it answers over HTTP and UDP, and where the kernel has it over SCTP, on all ports that
// PORTS names.
//
//	echo          serves
//	echo get URL  prints the answer
//
// It learns who it is from NODE_NAME, POD_NAME, POD_NAMESPACE and POD_IP, as the manual's image is,
// and from
//
//	PORTS  "8080/tcp 8080/udp 9090/tcp"; "" is 8080/tcp 8080/udp. 9999/sctp is possible.
//	READY  "false": /healthz says so until /ready?on=true
//	GRACE  how long it goes on serving after SIGTERM; "" is that it ends at once.
func echo(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch {
	case len(args) == 0:
		return serveEcho(ctx)
	case len(args) == 2 && args[0] == "get":
		return get(ctx, args[1])
	}
	return errors.New("usage: echo, echo get URL")
}

func serveEcho(ctx context.Context) error {
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

func orElse(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
