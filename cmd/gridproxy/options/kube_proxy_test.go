package options

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeproxy "k8s.io/kube-proxy/config/v1alpha1"
)

// TestBindPorts: --healthz-port and --metrics-port have the effect that they have in kube-proxy,
// wherever they stand, and an address may have no port.
func TestBindPorts(t *testing.T) {
	for args, want := range map[string]string{
		"--healthz-port=0": "",
		"--healthz-port=0 --healthz-bind-address=127.0.0.1:1":        "",
		"--healthz-bind-address=127.0.0.1 --healthz-port=0":          "",
		"--healthz-bind-address=127.0.0.1 --healthz-port=9999":       "127.0.0.1:9999",
		"--healthz-port=9999 --healthz-bind-address=127.0.0.1":       "127.0.0.1:9999",
		"--healthz-port=9999 --healthz-bind-address=[::1]":           "[::1]:9999",
		"--healthz-port=9999 --healthz-bind-address=127.0.0.1:10256": "127.0.0.1:10256",
		"--healthz-port=9999":                          "0.0.0.0:10256",
		"--healthz-port=9999 --healthz-bind-address=":  "",
		"--healthz-port=0 --healthz-port=9999":         "0.0.0.0:10256",
		"--healthz-bind-address=::1 --metrics-port=99": "[::1]:10256",
		"--healthz-bind-address=":                      "",
		"--healthz-bind-address=0.0.0.0":               "0.0.0.0:10256",
		"--healthz-bind-address=[::1]":                 "[::1]:10256",
		"--healthz-bind-address=127.0.0.1:1":           "127.0.0.1:1",
		"--healthz-bind-address=::":                    "[::]:10256",
	} {
		o, _, err := parse(t, strings.Fields(args)...)
		if err != nil || o.HealthzBindAddress != want {
			t.Errorf("%s: got %q, %v, want %q", args, o.HealthzBindAddress, err, want)
		}
		unused := strings.Contains(strings.Join(o.DaemonWarnings(), "\n"), "--healthz-port 9999 has no effect")
		if reports := want != "" && strings.Contains(args, "9999") && !strings.Contains(want, "9999"); unused != reports {
			t.Errorf("%s: warns that the port does not count: %t, want %t", args, unused, reports)
		}
	}
}

// TestDaemonWarnings: flags of kube-proxy without effect are a warning, unless they have
// kube-proxy's default. So is mode ClusterCIDR without a range.
func TestDaemonWarnings(t *testing.T) {
	const noRange = "--detect-local-mode ClusterCIDR without --cluster-cidr: "
	for _, test := range []struct {
		args string
		want []string // how the warnings begin
	}{
		{"", []string{noRange}},
		{"--detect-local-mode=NodeCIDR", nil},
		{"--cluster-cidr=10.244.0.0/16", nil},
		{"--cluster-cidr=10.244.0.0/16 --bind-address=0.0.0.0 --config-sync-period=15m --log_flush_frequency=5000ms --log-text-split-stream=false", nil},
		{
			"--cluster-cidr=10.244.0.0/16 --vmodule=proxier=4 --bind-address=192.0.2.1 --config-sync-period=1m --log-json-split-stream --log_flush_frequency=1s",
			[]string{
				"--bind-address 192.0.2.1 has no effect: ", "--config-sync-period 1m0s has no effect: ", "--log-flush-frequency 1s has no effect: ",
				"--log-json-split-stream true has no effect: ", "--vmodule proxier=4 has no effect: ",
			},
		},
		{"--cluster-cidr=10.244.0.0/16 --vmodule=a=1 --vmodule=", nil},
		{
			"--cluster-cidr=10.244.0.0/16 --kube-api-content-type=application/json --show-hidden-metrics-for-version=1.35",
			[]string{"--kube-api-content-type application/json has no effect: ", "--show-hidden-metrics-for-version 1.35 has no effect: "},
		},
	} {
		o, _, err := parse(t, strings.Fields(test.args)...)
		if err != nil {
			t.Fatal(err)
		}
		same := cmp.Comparer(func(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) })
		if diff := cmp.Diff(test.want, o.DaemonWarnings(), same, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", test.args, diff)
		}
	}
}

// TestKubeProxyChecks: combinations that kube-proxy refuses, or that have no meaning.
func TestKubeProxyChecks(t *testing.T) {
	for args, want := range map[string]string{
		"--write-config-to=f":                                               "--write-config-to f: gridproxy writes no configuration file; ",
		"--master=https://a:6443 --manifests=m":                             "--master https://a:6443 and --manifests m: give one of them",
		"--master=a:6443 --api-servers=b:6443":                              "--master a:6443 and --api-servers b:6443: give one of them",
		"--iptables-sync-period=2s --iptables-min-sync-period=3s":           "--iptables-sync-period 2s is shorter than --iptables-min-sync-period 3s: give at least 3s",
		"--proxy-mode=ipvs --ipvs-sync-period=1m --ipvs-min-sync-period=1h": "--ipvs-sync-period 1m0s is shorter than --ipvs-min-sync-period 1h0m0s",
		"--proxy-mode=ipvs --feature-gates=KubeProxyIPVS=false":             "--proxy-mode ipvs: feature gate KubeProxyIPVS is false",
		// These are right.
		"--master=https://a:6443 --kubeconfig=k":                            "",
		"--ipvs-sync-period=1m --ipvs-min-sync-period=1h":                   "", // of the mode that is not in use
		"--iptables-sync-period=2s --iptables-min-sync-period=2s":           "",
		"--feature-gates=KubeProxyIPVS=false":                               "",
		"--proxy-mode=ipvs --feature-gates=KubeProxyIPVS=true":              "",
		"--cleanup --init-only --version=raw --oom-score-adj=-999":          "",
		"--iptables_sync_period=30s --logging_format=json --healthz_port=0": "",
	} {
		o, _, err := parse(t, strings.Fields(args)...)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Check(); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
	}
}

// TestEachFieldIsAnswered: no field of the file is silently without effect, whatever its type.
func TestEachFieldIsAnswered(t *testing.T) {
	_, warnings, err := readConfig(t, head+`logging: {flushFrequency: 1s, vmodule: [{filePattern: proxier, verbosity: 4}], options: {text: {infoBufferSize: 1k}, json: {splitStream: true}}}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"logging.flushFrequency", "logging.vmodule", "logging.options.text.infoBufferSize", "logging.options.json.splitStream"} {
		if !strings.Contains(strings.Join(warnings, "\n"), "field "+field+" has no effect") {
			t.Errorf("no warning of %s in %q", field, warnings)
		}
	}
}

// TestHonouredFields: fields that have had no effect in earlier versions.
func TestHonouredFields(t *testing.T) {
	o, warnings, err := readConfig(t, head+"bindAddressHardFail: true\noomScoreAdj: -999\nmode: ipvs\nfeatureGates: {KubeProxyIPVS: false}\nhealthzBindAddress: 127.0.0.1\n", "--healthz-port=9999")
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	if !o.BindHardFail || o.OOMScoreAdj == nil || *o.OOMScoreAdj != -999 || o.HealthzBindAddress != "127.0.0.1:9999" {
		t.Errorf("got %+v", o)
	}
	if err := o.Check(); err == nil || !strings.Contains(err.Error(), "KubeProxyIPVS") {
		t.Errorf("mode ipvs without its gate: %v", err)
	}
}

// TestBindAddressOfTheFile: an IPv6 address there moves the servers that have no address of their
// own, as in kube-proxy.
func TestBindAddressOfTheFile(t *testing.T) {
	for _, test := range []struct {
		file             string
		args             []string
		healthz, metrics string
		warns            bool
	}{
		{"bindAddress: 0.0.0.0\n", nil, "0.0.0.0:10256", "127.0.0.1:10249", true},
		{"bindAddress: \"::\"\n", nil, "[::]:10256", "[::1]:10249", false},
		{"bindAddress: fd00::1\n", nil, "[::]:10256", "[::1]:10249", true},
		{"bindAddress: \"::\"\nmetricsBindAddress: 127.0.0.1\n", nil, "[::]:10256", "127.0.0.1:10249", false},
		{"bindAddress: \"::\"\n", []string{"--healthz-bind-address=127.0.0.1:1", "--metrics-port=0"}, "127.0.0.1:1", "", false},
	} {
		o, warnings, err := readConfig(t, head+test.file, test.args...)
		if err != nil || o.HealthzBindAddress != test.healthz || o.MetricsBindAddress != test.metrics || (len(warnings) > 0) != test.warns {
			t.Errorf("%q, %q: %s and %s, warnings %q, error %v", test.file, test.args, o.HealthzBindAddress, o.MetricsBindAddress, warnings, err)
		}
	}
}

// TestMigrationTable: the tables of docs/migrate-from-kube-proxy.md have every field of
// KubeProxyConfiguration and every flag without effect, each once, and no other field.
func TestMigrationTable(t *testing.T) {
	text, err := os.ReadFile("../../../docs/migrate-from-kube-proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	fields := named(string(text), "| kube-proxy's field |")
	for _, path := range fieldsOf(reflect.TypeFor[kubeproxy.KubeProxyConfiguration](), "") {
		if fields[path] != 1 {
			t.Errorf("field %s is named %d times", path, fields[path])
		}
		delete(fields, path)
	}
	for field := range fields {
		t.Errorf("KubeProxyConfiguration has no field %s", field)
	}
	flags := named(string(text), "| kube-proxy's flag |")
	for _, flag := range append(withoutEffect(), ignorable{name: "write-config-to"}, ignorable{name: "healthz-port"}, ignorable{name: "metrics-port"}) {
		if flags["--"+flag.name] != 1 {
			t.Errorf("--%s is named %d times", flag.name, flags["--"+flag.name])
		}
	}
}

// named counts the words in backquotes of the first column of a table, which begins with head.
func named(text, head string) map[string]int {
	found := map[string]int{}
	inside := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, head):
			inside = true
		case !strings.HasPrefix(line, "|"):
			inside = false
		case inside:
			for i, word := range strings.Split(strings.Split(line, "|")[1], "`") {
				if i%2 == 1 {
					found[word]++
				}
			}
		}
	}
	return found
}

// fieldsOf are the paths of the fields of a type. A type that reads its own JSON has no fields.
func fieldsOf(t reflect.Type, path string) (paths []string) {
	if t.Kind() == reflect.Pointer {
		return fieldsOf(t.Elem(), path)
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return []string{path}
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Type == reflect.TypeFor[metav1.TypeMeta]() || name == "-":
		case name == "":
			paths = append(paths, fieldsOf(field.Type, path)...)
		default:
			paths = append(paths, fieldsOf(field.Type, strings.TrimPrefix(path+"."+name, "."))...)
		}
	}
	return paths
}
