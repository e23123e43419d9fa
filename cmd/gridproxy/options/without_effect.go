package options

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// IgnoredFlag is a flag of kube-proxy that is set and has no effect here.
type IgnoredFlag struct{ Name, Value, Why string }

// ignorable is a flag of kube-proxy that is accepted and has no effect here.
type ignorable struct {
	name, typ string
	preset    string                       // kube-proxy's default, for which there is no warning
	parse     func(string) (string, error) // refuses what kube-proxy refuses; the result is compared with preset
	why       string                       // it has no effect
}

// withoutEffect returns all flags of kube-proxy that have no effect here.
func withoutEffect() []ignorable {
	const stream, alpha = "log lines go to standard error, without a buffer", "bytes"
	period := func(least time.Duration) func(string) (string, error) {
		return func(text string) (string, error) {
			d, err := parseDuration(least, math.MaxInt64)(text)
			return d.String(), err
		}
	}
	return []ignorable{
		{"bind-address", "ip", "0.0.0.0", parseIP, "the addresses of this node are those of its Node object; --nodeport-addresses says where NodePorts answer"},
		{"boot-id-file", "files", "/proc/sys/kernel/random/boot_id", parseAny, "no metric of the machine is read from it"},
		{"config-sync-period", "duration", "15m0s", period(1), "objects are watched, and not read again after a time"},
		{"kube-api-content-type", "type", "application/vnd.kubernetes.protobuf", parseAny, "the daemon chooses how each kind of object is sent"},
		{"log-flush-frequency", "duration", "5s", period(0), stream},
		{"log-json-info-buffer-size", alpha, "0", parseAny, stream},
		{"log-json-split-stream", "bool", "false", parseTruth, stream},
		{"log-text-info-buffer-size", alpha, "0", parseAny, stream},
		{"log-text-split-stream", "bool", "false", parseTruth, stream},
		{"machine-id-file", "files", "/etc/machine-id,/var/lib/dbus/machine-id", parseAny, "no metric of the machine is read from it"},
		{"show-hidden-metrics-for-version", "version", "", parseAny, "no metric is hidden"},
		{"vmodule", "pattern=N,...", "", parseAny, "--v is the verbosity of the whole log"},
	}
}

func parseAny(text string) (string, error) { return text, nil }

func parseIP(text string) (string, error) {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return "", fmt.Errorf("want an IP address")
	}
	return ip.String(), nil
}

func parseTruth(text string) (string, error) {
	b, err := strconv.ParseBool(text)
	if err != nil {
		return "", fmt.Errorf("want true or false")
	}
	return strconv.FormatBool(b), nil
}

func (o *Options) addWithoutEffect(fs *pflag.FlagSet) {
	for _, flag := range withoutEffect() {
		f := fs.VarPF(ignoredValue{&o.Ignored, flag}, flag.name, "", "of kube-proxy; no effect: "+flag.why)
		if flag.typ == "bool" {
			f.NoOptDefVal = "true"
		}
	}
}

// ignoredValue is the pflag.Value of a flag without effect. It notes what differs from kube-proxy's
// default.
type ignoredValue struct {
	to   *[]IgnoredFlag
	flag ignorable
}

func (v ignoredValue) Type() string { return v.flag.typ }

func (v ignoredValue) String() string {
	if v.to != nil {
		for _, set := range *v.to {
			if set.Name == v.flag.name {
				return set.Value
			}
		}
	}
	return v.flag.preset
}

func (v ignoredValue) Set(text string) error {
	parsed, err := v.flag.parse(text)
	if err != nil {
		return err
	}
	*v.to = slices.DeleteFunc(*v.to, func(set IgnoredFlag) bool { return set.Name == v.flag.name })
	if parsed != v.flag.preset {
		*v.to = append(*v.to, IgnoredFlag{v.flag.name, parsed, v.flag.why})
		slices.SortFunc(*v.to, func(a, b IgnoredFlag) int { return strings.Compare(a.Name, b.Name) })
	}
	return nil
}
