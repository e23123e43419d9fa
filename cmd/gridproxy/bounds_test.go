package main

import (
	"testing"

	"gridproxy/cmd/command/commandtest"
)

// TestBounds: each flag with a duration, a path or an address has a bound, or a reason.
func TestBounds(t *testing.T) {
	const (
		read     = "a file that people name to commands too, from their folder; one that is missing is an error with its name"
		noEffect = "kube-proxy's; it has no effect"
	)
	longer := func(d string) commandtest.FlagBound { return commandtest.FlagBound{Beyond: d} }
	kernel := longer("5965h13m57s")
	cidr := commandtest.FlagBound{Beyond: "10.0.0.0/33"}
	commandtest.Bounds(t, newRoot, map[string]commandtest.FlagBound{
		"iptables-min-sync-period":          longer("1h0m1s"),
		"iptables-sync-period":              longer("24h0m1s"),
		"ipvs-min-sync-period":              longer("1h0m1s"),
		"ipvs-sync-period":                  longer("24h0m1s"),
		"ipvs-drain-timeout":                longer("168h0m1s"),
		"ipvs-tcp-timeout":                  kernel,
		"ipvs-tcpfin-timeout":               kernel,
		"ipvs-udp-timeout":                  kernel,
		"conntrack-tcp-timeout-close-wait":  kernel,
		"conntrack-tcp-timeout-established": kernel,
		"conntrack-udp-timeout":             kernel,
		"conntrack-udp-timeout-stream":      kernel,
		"verify-period":                     longer("1h0m1s"),
		"other-proxy-after":                 longer("24h0m1s"),
		"reconnect-grace":                   longer("87600h"),
		"wait":                              {Why: "a person waits, and can end it"},
		"config-sync-period":                {Why: noEffect},
		"log-flush-frequency":               {Why: noEffect},

		"state-dir":            {Beyond: "states"},
		"status-socket":        {Beyond: "./status.sock"},
		"names-socket":         {Beyond: "names.sock"},
		"write-config-to":      {Beyond: "/config.yaml"}, // no value is taken
		"status status-socket": {Why: "a person names the socket of a daemon, from any folder"},
		"config":               {Why: read},
		"kubeconfig":           {Why: read},
		"manifests":            {Why: read},
		"from-state":           {Why: read},
		"boot-id-file":         {Why: noEffect},
		"machine-id-file":      {Why: noEffect},

		"api-servers":          {Beyond: "192.0.2.1:0"},
		"master":               {Beyond: "ftp://192.0.2.1"},
		"cluster-cidr":         cidr,
		"ipvs-exclude-cidrs":   cidr,
		"nodeport-addresses":   cidr,
		"dns-address":          {Beyond: "127.0.0.1"}, // and not inside of --cluster-cidr: TestDNSAddressOfPods
		"healthz-bind-address": {Beyond: ":10256"},
		"metrics-bind-address": {Beyond: "localhost:10249"},
		"healthz-port":         {Beyond: "65536"},
		"metrics-port":         {Beyond: "65536"},
		"bind-address":         {Why: noEffect},

		"kube-api-content-type":           {Why: noEffect},
		"log-json-info-buffer-size":       {Why: noEffect},
		"log-text-info-buffer-size":       {Why: noEffect},
		"show-hidden-metrics-for-version": {Why: noEffect},
		"vmodule":                         {Why: noEffect},
		"fail-on":                         {Why: "a word, and no other is taken"},
	})
}
