package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"gridproxy/cmd/command"

	"github.com/spf13/pflag"
)

type options struct {
	addresses  []string
	socket     string
	file       string
	resolvConf string
	metrics    string
	verbosity  int

	addrs []netip.Addr // addresses, read
}

// The defaults, as gridproxy has them.
func defaults() options {
	return options{
		addresses:  []string{"169.254.20.12", "fd00:6772:6964::12"},
		socket:     "/run/gridproxy/names.sock",
		file:       "/run/gridproxy/grid-dns.names",
		resolvConf: "/etc/resolv.conf",
		metrics:    "127.0.0.1:9253",
	}
}

func (o *options) addAddresses(f *pflag.FlagSet) {
	f.StringSliceVar(&o.addresses, "address", o.addresses, "addresses to answer at, on port 53; gridproxy adds them to interface lo (--dns-address)")
}

func (o *options) addTo(f *pflag.FlagSet) {
	o.addAddresses(f)
	f.StringVar(&o.socket, "names-socket", o.socket, "where gridproxy says what DNS says")
	f.StringVar(&o.file, "names-file", o.file, "where that is kept over a restart, best on a file system in memory; empty = nowhere")
	f.StringVar(&o.resolvConf, "resolv-conf", o.resolvConf, "the file with the DNS servers of this machine, which are asked where the cluster's do not answer")
	f.StringVar(&o.metrics, "metrics-bind-address", o.metrics, "address and port of the metrics; empty = none")
	f.IntVarP(&o.verbosity, "v", "v", 0, "how much is logged: 4 and above are details")
}

func (o *options) read() error {
	var err error
	if o.addrs, err = command.ParseDNSAddresses(strings.Join(o.addresses, ",")); err != nil {
		return fmt.Errorf("--address %w; gridproxy adds it (--dns-address)", err)
	}
	if len(o.addrs) == 0 {
		return errors.New("--address is empty: name at least one address")
	}
	if _, err := netip.ParseAddrPort(o.metrics); o.metrics != "" && err != nil {
		return fmt.Errorf("--metrics-bind-address %q is no ADDRESS:PORT; want something like 127.0.0.1:9253", o.metrics)
	}
	preset := defaults()
	return errors.Join(command.CheckPath("names-socket", o.socket, preset.socket), command.CheckPath("names-file", o.file, preset.file),
		command.CheckPath("resolv-conf", o.resolvConf, preset.resolvConf))
}
