// Command install installs groups of Debian packages where one of their programs is missing:
//
//	go run ./integration/debian/install iptables machines
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"gridproxy/integration/debian"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(names []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, name := range names {
		group, err := debian.Find(name)
		if err != nil {
			return err
		}
		if err := group.Install(ctx, os.Stdout); err != nil {
			return err
		}
	}
	return nil
}
