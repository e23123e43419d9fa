package main

import (
	"errors"
	"fmt"
	"net/netip"

	"gridproxy/cmd/command"
	"gridproxy/cmd/dnsquery"

	"github.com/spf13/cobra"
)

// newCheck returns the command check, a probe. It succeeds if the server answers over UDP and
// TCP at one of its addresses at least: the machine may lack the family of another one.
func newCheck() *cobra.Command {
	o := defaults()
	domain := "cluster.local"
	cmd := &cobra.Command{
		Use:     "check",
		Short:   "Ask the server of this node one question; fails if it does not answer",
		Args:    command.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return command.NewUsageError(o.read()) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			var errs []error
			for _, addr := range o.addrs {
				err := check(cmd, addr, domain)
				if err == nil {
					return nil
				}
				errs = append(errs, fmt.Errorf("%s: %w", addr, err))
			}
			return fmt.Errorf("the DNS server of this node does not answer; see its log, and gridproxy status: %w", errors.Join(errs...))
		},
	}
	o.addAddresses(cmd.Flags())
	cmd.Flags().StringVar(&domain, "cluster-domain", domain, "the cluster domain")
	return cmd
}

func check(cmd *cobra.Command, addr netip.Addr, domain string) error {
	at := netip.AddrPortFrom(addr, portDNS)
	for _, network := range []string{"udp", "tcp"} {
		if err := dnsquery.Ask(cmd.Context(), network, at, domain); err != nil {
			return fmt.Errorf("over %s: %w", network, err)
		}
	}
	return nil
}
