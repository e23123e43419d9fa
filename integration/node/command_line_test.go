package node

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/integration/env/apiserver"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
)

// flagOfHelp matches a flag in the help of kube-proxy: its name, the type of its value, what it
// does and its default.
var flagOfHelp = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z0-9-]+) ?([A-Za-z0-9\[\]=]*) {2,}(.*?)(?: \(default "?(.*?)"?\))?$`)

// gateOfHelp matches a feature gate there.
var gateOfHelp = regexp.MustCompile(`(?m)^ +(?:kube:)?(\w+)=true\|false \(`)

// zeroOfHelp are the defaults that the help leaves out, by the type of the flag. Other types have
// an empty text.
var zeroOfHelp = map[string]string{"": "false", "duration": "0s", "Level": "0", "quantity": "0", "version[=true]": "false"}

// TestCommandLine: gridproxy run takes every flag and feature gate that the help of the real
// kube-proxy lists. kube-proxy's default of a flag changes nothing here, because it is the default
// here, too, or has no effect. The configuration that kube-proxy writes can be read.
func TestCommandLine(t *testing.T) {
	tools, err := apiserver.Ensure(t.Context(), os.Stderr)
	must(t, err)
	help, err := exec.CommandContext(t.Context(), tools.Path("kube-proxy"), "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("kube-proxy --help: %v\n%s", err, help)
	}
	otherDefault := map[string]string{ // and why
		"oom-score-adj": "the kubelet decides it by the priority of the Pod",
	}
	flags := flagOfHelp.FindAllStringSubmatch(string(help), -1)
	for _, flag := range flags {
		name, typ, preset := flag[1], flag[2], flag[4]
		if name == "help" || otherDefault[name] != "" {
			continue
		}
		if preset == "" {
			preset = zeroOfHelp[typ]
		}
		o, _, err := parseFlags("--" + name + "=" + preset)
		if err != nil {
			t.Errorf("--%s=%s, the default of kube-proxy, is refused: %v", name, preset, err)
		}
		if diff := cmp.Diff(options.Defaults(), o, cmpopts.EquateEmpty(), everything); diff != "" {
			t.Errorf("--%s=%s, the default of kube-proxy, is not ours (-ours +with the flag):\n%s", name, preset, diff)
		}
		if typ == "" {
			if _, _, err := parseFlags("--" + name); err != nil {
				t.Errorf("--%s without a value is refused: %v", name, err)
			}
		}
	}
	gates := gateOfHelp.FindAllStringSubmatch(string(help), -1)
	for _, gate := range gates {
		if _, _, err := parseFlags("--feature-gates=" + gate[1] + "=true"); err != nil {
			t.Errorf("gate %s is refused: %v", gate[1], err)
		}
	}
	if len(flags) < 50 || len(gates) < 50 {
		t.Errorf("the help of kube-proxy has %d flags and %d gates, by what this test reads of it", len(flags), len(gates))
	}
	t.Logf("%d flags and %d gates of kube-proxy %s", len(flags), len(gates), apiserver.Version)

	file := filepath.Join(t.TempDir(), "config.yaml")
	if out, err := exec.CommandContext(t.Context(), tools.Path("kube-proxy"), "--write-config-to="+file).CombinedOutput(); err != nil {
		t.Fatalf("kube-proxy --write-config-to: %v\n%s", err, out)
	}
	_, set, err := parseFlags()
	must(t, err)
	text, err := options.ConfigText(file)
	must(t, err)
	warnings, err := options.SetConfig(file, text, set)
	if err != nil {
		t.Error(err)
	}
	t.Logf("read, with warnings:\n%s", strings.Join(warnings, "\n"))
}

// everything lets a comparison see fields that are not exported.
var everything = cmp.Exporter(func(reflect.Type) bool { return true })

func parseFlags(args ...string) (options.Options, *pflag.FlagSet, error) {
	o := options.Defaults()
	flags := pflag.NewFlagSet("gridproxy", pflag.ContinueOnError)
	o.AddFlags(flags)
	err := flags.Parse(args)
	return o, flags, err
}
