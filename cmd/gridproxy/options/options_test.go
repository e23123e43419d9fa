package options

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/rules"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	kubeproxy "k8s.io/kube-proxy/config/v1alpha1"
)

// everything lets a comparison see fields that are not exported.
var everything = cmp.Exporter(func(reflect.Type) bool { return true })

func parse(t *testing.T, args ...string) (Options, *pflag.FlagSet, error) {
	t.Helper()
	o := Defaults()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(fs, GroupSource)
	o.AddFamily(fs)
	o.AddOutput(fs)
	o.AddPart(fs)
	err := fs.Parse(args)
	return o, fs, err
}

// TestDefaultsSurviveTheirFlags: a flag that is set to its printed default changes nothing, so that
// its parser accepts every default.
func TestDefaultsSurviveTheirFlags(t *testing.T) {
	_, fs, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() != "stringArray" && f.Name != "part" { // which has no word for all
			args = append(args, "--"+f.Name+"="+f.DefValue)
		}
	})
	got, _, err := parse(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Defaults(), got, cmpopts.EquateEmpty(), everything); diff != "" {
		t.Errorf("defaults changed (-want +got):\n%s", diff)
	}
}

func TestWrongValues(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"--api-servers=192.0.2.1", `"192.0.2.1" is not HOST:PORT; want something like`},
		{"--api-servers=a:6443,:1", `":1" is not HOST:PORT`},
		{"--api-servers=a:0", `"a:0" is not HOST:PORT`},
		{"--service-proxy-name=-", `not the value of a label`},
		{"--cluster-cidr=10.0.0.0/33", `invalid argument "10.0.0.0/33" for "--cluster-cidr" flag: "10.0.0.0/33" is not a CIDR`},
		{"--nodeport-addresses=secondary,10.0.0.0/8", `want the keywords primary, localhost and all, and CIDRs, with commas between them: "secondary" is not a CIDR`},
		{"--nodeport-addresses=Primary", `"Primary" is not a CIDR`},
		{"--nodeport-addresses=primary,10.0.0.0/8, primary", `the keyword primary is there twice; want it once`},
		{"--nodeport-addresses=localhost,localhost", `the keyword localhost is there twice`},
		{"--nodeport-addresses=all,primary,all", `the keyword all is there twice`},
		{"--iptables-masquerade-bit=32", `want a bit of the packet mark, 0 to 31`},
		{"--proxy-mode=ebpf", `want iptables or ipvs`},
		{"--ipvs-scheduler=round robin", `want rr, wrr, lc, wlc, `},
		{"--ipvs-exclude-cidrs=10.0.0.0/8,all", `"all" is not a CIDR`},
		{"--ipvs-drain-timeout=-1s", `want at least 0s`},
		{"--reconnect-grace=87600h", `want at most 1h0m0s`},
		{"--ipvs-sync-period=0s", `want at least 1s`},
		{"--part=nat", `want ipvs, ipset, addresses or iptables`},
		{"--proxy-mode=nftables", `there is no mode nftables; want iptables`},
		{"--iptables-variant=nftables", `want auto, nft or legacy`},
		{"--ip-family=4", `want ipv4 or ipv6`},
		{"--verify-period=0s", `want at least 1s`},
		{"--other-proxy-after=0s", `want at least 1s`},
		{"--iptables-min-sync-period=-1s", `want at least 0s`},
		{"--iptables-min-sync-period=10", `want a duration such as`},
		{"--node-name=Bad_Name", `not the name of a Node: `},
		{"--healthz-bind-address=:10256", `want IP:PORT such as 127.0.0.1:10256`},
		{"--detect-local-mode=clustercidr", `want ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix`},
		{"--nodes-without-unit=none", `want closed, local or open`},
		{"--pod-bridge-interface=averyveryverylongname", `not the name of a network interface`},
		{"--conntrack-min=-1", `want a whole number, 0 or more`},
		{"--kube-api-qps=0", `want requests a second, more than 0`},
		{"--feature-gates=AllowServiceExternalIPs", `"AllowServiceExternalIPs" is not NAME=true or NAME=false`},
		{"--feature-gates=AllowServiceExternalIPs=no", `is not NAME=true or NAME=false`},
		{"--feature-gates==false", `is not NAME=true or NAME=false`},
		{"--feature-gates=AllAlpha=true,Another=true", `"Another" is no feature gate of kube-proxy`},
		{"--output=csv", `want table, json or yaml`},
		// What kube-proxy refuses too.
		{"--healthz-port=65536", `want a port, 1 to 65535, or 0 for no server`},
		{"--metrics-port=-1", `want a port`},
		{"--oom-score-adj=1001", `want a number, -1000 to 1000`},
		{"--bind-address=node", `want an IP address`},
		{"--config-sync-period=0", `want at least 1ns`},
		{"--log-flush-frequency=soon", `want a duration`},
		{"--log-text-split-stream=perhaps", `want true or false`},
		{"--master=ftp://192.0.2.1", `want the address of an API server, such as https://192.168.0.10:6443`},
		{"--master=https://", `want the address of an API server`},
		{"--version=v1.37.0", `want true, raw or false`},
		{"--logging-format=klog", `want text or json`},
	} {
		_, _, err := parse(t, test.args)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want one with %q", test.args, err, test.want)
		}
	}
}

// TestNodePortAddresses: keywords and CIDRs in any mix, in a flag and in a file, and what is
// printed means the same.
func TestNodePortAddresses(t *testing.T) {
	const localhost, all = "127.0.0.0/8,::1/128", "0.0.0.0/0,::/0"
	for text, want := range map[string]struct {
		primary  bool
		prefixes string
	}{
		"":                         {},
		"primary":                  {primary: true},
		"localhost":                {prefixes: localhost},
		"all":                      {prefixes: all},
		"primary, localhost":       {primary: true, prefixes: localhost},
		"10.0.0.0/8,primary":       {primary: true, prefixes: "10.0.0.0/8"},
		"all,10.0.0.0/8,localhost": {prefixes: all + ",10.0.0.0/8," + localhost},
		"10.0.0.0/8,10.0.0.0/8":    {prefixes: "10.0.0.0/8,10.0.0.0/8"}, // a CIDR may be repeated
		"localhost,127.0.0.0/8":    {prefixes: localhost + ",127.0.0.0/8"},
	} {
		o, fs, err := parse(t, "--nodeport-addresses="+text)
		if got := printList(o.NodePortAddresses.Prefixes); err != nil || o.NodePortAddresses.Primary != want.primary || got != want.prefixes {
			t.Errorf("%q: %+v, %v; want %+v", text, o.NodePortAddresses, err, want)
			continue
		}
		if again, _, err := parse(t, "--nodeport-addresses="+fs.Lookup("nodeport-addresses").Value.String()); err != nil || !reflect.DeepEqual(again, o) {
			t.Errorf("%q: printed and read again it is %+v, %v", text, again.NodePortAddresses, err)
		}
		fromFile, _, err := readConfig(t, head+"nodePortAddresses: ["+text+"]\n")
		if err != nil || !reflect.DeepEqual(fromFile.NodePortAddresses, o.NodePortAddresses) {
			t.Errorf("nodePortAddresses: [%s]: %+v, %v", text, fromFile.NodePortAddresses, err)
		}
	}
	if o, _, err := readConfig(t, head+"nodePortAddresses: [\"\"]\n"); err == nil {
		t.Errorf("one empty element: %+v, want it refused", o.NodePortAddresses)
	}
	for _, mistyped := range []string{",", "primary,", " ", "10.0.0.0/8,,localhost"} {
		if o, _, err := parse(t, "--nodeport-addresses="+mistyped); err == nil {
			t.Errorf("%q: %+v, want it refused", mistyped, o.NodePortAddresses)
		}
	}
}

func TestCheck(t *testing.T) {
	o, _, err := parse(t, "--manifests=a", "--manifests=", "--kubeconfig=k", "--detect-local-mode=BridgeInterface", "--part=ipset")
	if err != nil {
		t.Fatal(err)
	}
	err = o.Check()
	for _, want := range []string{"--manifests a, and --kubeconfig k: give one of them", `--manifests "": want`, "--pod-bridge-interface is empty", "--part ipset: the rules of mode iptables have no parts"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// TestDNSAddressOfPods: an address of grid-dns that a Pod may have is refused, whether the flag or
// the configuration file has the range of the Pods.
func TestDNSAddressOfPods(t *testing.T) {
	for args, wrong := range map[string]string{
		"--dns-address=10.244.0.12":                              "--dns-address 10.244.0.12 is inside of --cluster-cidr 10.244.0.0/16, ",
		"--dns-address=169.254.20.12,fd00:1::12":                 "--dns-address fd00:1::12 is inside of --cluster-cidr fd00:1::/64, ",
		"--dns-address=10.243.0.12,fd00:2::12":                   "",
		"--dns-address=10.244.0.12 --cluster-cidr=10.245.0.0/16": "", // the flag wins
		"--dns-address=10.244.0.12 --local-dns=false":            "",
	} {
		words := append([]string{"--local-dns"}, strings.Fields(args)...)
		fromFile, _, err := readConfig(t, head+"clusterCIDR: 10.244.0.0/16,fd00:1::/64\n", words...)
		if err != nil {
			t.Fatal(err)
		}
		fromFlag, _, err := parse(t, append([]string{"--cluster-cidr=10.244.0.0/16,fd00:1::/64"}, words...)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []Options{fromFile, fromFlag} {
			if err := o.Check(); (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
				t.Errorf("%s: %v, want %q", args, err, wrong)
			}
		}
	}
}

// TestRepeatedLists: a list that is given again is added to, as kube-proxy does.
func TestRepeatedLists(t *testing.T) {
	for _, flag := range []string{"nodeport-addresses", "ipvs-exclude-cidrs"} {
		_, fs, err := parse(t, "--"+flag+"=10.0.0.0/8,192.168.0.0/16", "--"+flag+"=", "--"+flag+"=fd00::/8")
		if got, want := fs.Lookup(flag).Value.String(), "10.0.0.0/8,192.168.0.0/16,fd00::/8"; err != nil || got != want {
			t.Errorf("--%s: %q, %v; want %q", flag, got, err, want)
		}
	}
	const twice = "--nodeport-addresses=primary"
	if o, _, err := parse(t, twice, twice); err == nil {
		t.Errorf("%s twice: %+v, want it refused as in one list", twice, o.NodePortAddresses)
	}
	o, _, err := parse(t, "--api-servers=a:6443", "--api-servers=b:6443")
	if want := []string{"a:6443", "b:6443"}; err != nil || !slices.Equal(o.APIServers, want) {
		t.Errorf("--api-servers: %v, %v; want %v", o.APIServers, err, want)
	}
}

func readConfig(t *testing.T, text string, args ...string) (Options, []string, error) {
	t.Helper()
	o := Defaults()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	warnings, err := SetConfig("config.yaml", []byte(text), fs)
	for i := range warnings {
		warnings[i] = strings.TrimPrefix(warnings[i], "config.yaml: ")
	}
	return o, warnings, err
}

const head = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

// The kubeconfig in kubeadm's file does not win over --api-servers.
func TestConfigBesideAPIServers(t *testing.T) {
	o, warnings, err := readConfig(t, head+"clientConnection: {kubeconfig: /var/lib/kube-proxy/kubeconfig.conf}\n", "--api-servers=a:6443, [fd00::1]:6443")
	if err != nil || o.Kubeconfig != "" || o.Check() != nil {
		t.Errorf("kubeconfig %q, %v, %v", o.Kubeconfig, err, o.Check())
	}
	if diff := cmp.Diff([]string{"field clientConnection.kubeconfig has no effect beside --api-servers"}, warnings); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a:6443", "[fd00::1]:6443"}, o.APIServers); diff != "" {
		t.Error(diff)
	}
}

// kubeadm is what kubeadm writes: every field, most of them empty.
const kubeadm = head + `
bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection: {acceptContentTypes: "", burst: 0, contentType: "", kubeconfig: /var/lib/kube-proxy/kubeconfig.conf, qps: 0}
clusterCIDR: 10.244.0.0/16,fd00::/64
configSyncPeriod: 0s
conntrack: {maxPerCore: null, min: 0, tcpBeLiberal: false, tcpCloseWaitTimeout: null, tcpEstablishedTimeout: 1h0m0s, udpStreamTimeout: 0s, udpTimeout: 0s}
detectLocal: {bridgeInterface: "", interfaceNamePrefix: ""}
detectLocalMode: ""
enableProfiling: false
healthzBindAddress: ""
hostnameOverride: ""
iptables: {localhostNodePorts: false, masqueradeAll: true, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
ipvs: {excludeCIDRs: null, minSyncPeriod: 0s, scheduler: "", strictARP: false, syncPeriod: 0s, tcpFinTimeout: 0s, tcpTimeout: 0s, udpTimeout: 0s}
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}, verbosity: 0}
metricsBindAddress: ""
mode: ""
nftables: {masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
nodePortAddresses: [10.0.0.0/8, 192.168.0.0/16]
oomScoreAdj: null
portRange: ""
showHiddenMetricsForVersion: ""
winkernel: {enableDSR: false, forwardHealthCheckVip: false, networkName: "", rootHnsEndpointName: "", sourceVip: ""}
`

func TestConfigOfKubeadm(t *testing.T) {
	got, warnings, err := readConfig(t, kubeadm)
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.Kubeconfig = "/var/lib/kube-proxy/kubeconfig.conf"
	want.ClusterCIDRs, _ = parsePrefixes("10.244.0.0/16,fd00::/64")
	want.NodePortAddresses.Prefixes, _ = parsePrefixes("10.0.0.0/8,192.168.0.0/16")
	want.LocalhostNodePorts, want.MasqueradeAll = false, true
	want.Conntrack.Min, want.Conntrack.TCPTimeoutEstablished = 0, time.Hour
	if diff := cmp.Diff(want, got, everything); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"field bindAddress has no effect here"}, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestFlagsWinOverConfig(t *testing.T) {
	got, warnings, err := readConfig(t, head+"hostnameOverride: other\ndetectLocalMode: NodeCIDR\nclientConnection: {kubeconfig: k}\n",
		"--hostname-override=mine", "--manifests=m")
	if err != nil {
		t.Fatal(err)
	}
	if got.NodeName != "mine" || got.DetectLocalMode != rules.DetectNodeCIDR || got.Kubeconfig != "" {
		t.Errorf("got node %q, mode %q, kubeconfig %q", got.NodeName, got.DetectLocalMode, got.Kubeconfig)
	}
	if diff := cmp.Diff([]string{"field clientConnection.kubeconfig has no effect beside --manifests"}, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestConfigWithoutEffectIsAWarning(t *testing.T) {
	_, warnings, err := readConfig(t, head+"winkernel: {sourceVip: x}\nportRange: 1-2\nnonsense: 1\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`unknown field "nonsense": ignored`,
		"field portRange has no effect here",
		"field winkernel.sourceVip has no effect here",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

const ipvsFields = `
ipvs: {scheduler: lc, strictARP: true, excludeCIDRs: [10.1.0.0/16, "fd00:1::/64"], tcpTimeout: 15m, tcpFinTimeout: 2m, udpTimeout: 5m, syncPeriod: 20s, minSyncPeriod: 2s}
iptables: {syncPeriod: 40s, masqueradeAll: true}
`

func TestConfigOfIPVS(t *testing.T) {
	got, warnings, err := readConfig(t, head+"mode: ipvs"+ipvsFields, "--ipvs-scheduler=sh")
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.ProxyMode, want.MasqueradeAll, want.IPTables.Sync = ModeIPVS, true, 40*time.Second
	want.IPVS = IPVS{
		Periods:   Periods{MinSync: 2 * time.Second, Sync: 20 * time.Second},
		Scheduler: "sh", StrictARP: true, DrainTimeout: 15 * time.Minute,
		TCPTimeout: 15 * time.Minute, TCPFin: 2 * time.Minute, UDPTimeout: 5 * time.Minute,
	}
	want.IPVS.ExcludeCIDRs, _ = parsePrefixes("10.1.0.0/16,fd00:1::/64")
	if diff := cmp.Diff(want, got, everything); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"field iptables.syncPeriod has no effect in mode ipvs"}, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if p := got.Periods(); p != want.IPVS.Periods {
		t.Errorf("periods %+v, want those of the mode, %+v", p, want.IPVS.Periods)
	}
}

// TestConfigOfOtherMode: the command line decides the mode. Fields of the file for the other mode
// are warnings.
func TestConfigOfOtherMode(t *testing.T) {
	got, warnings, err := readConfig(t, head+"mode: ipvs"+ipvsFields, "--proxy-mode=iptables")
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 8 || warnings[5] != "field ipvs.tcpFinTimeout has no effect in mode iptables" {
		t.Errorf("warnings: %q", warnings)
	}
	if p := got.Periods(); p.Sync != 40*time.Second || p.MinSync != time.Second {
		t.Errorf("periods %+v, want those of mode iptables", p)
	}
}

func TestWrongConfig(t *testing.T) {
	for text, want := range map[string]string{
		head + "iptables: {masqueradeBit: 40}\nmode: x\n": `field iptables.masqueradeBit: "40": want a bit of the packet mark`,
		head + "mode: userspace\n":                        `field mode: "userspace": want iptables or ipvs`,
		head + "iptables: {masqueradeBit: x}\n":           "iptables.masqueradeBit",
		head + "featureGates: {Another: true}\n":          `field featureGates.Another: "Another" is no feature gate of kube-proxy`,
		"kind: Pod\napiVersion: v1\n":                     `apiVersion "v1", kind "Pod": want apiVersion kubeproxy.config.k8s.io/v1alpha1`,
		"a: [\n":                                          "not YAML: ",
	} {
		_, _, err := readConfig(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "config.yaml: ") {
			t.Errorf("%q: got error %v, want the file and %q", text, err, want)
		}
	}
	if _, err := ConfigText("/nonexistent"); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("missing file: got %v", err)
	}
}

// TestConfigIsLimited: an endless file is an error before it fills the memory.
func TestConfigIsLimited(t *testing.T) {
	if _, err := ConfigText("/dev/zero"); err == nil || !strings.Contains(err.Error(), "--config: /dev/zero: is larger than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}

// TestConfigIsReadWhole reads a file that was saved again, and refuses one that holds more.
func TestConfigIsReadWhole(t *testing.T) {
	const text = head + "clusterCIDR: 10.244.0.0/16\n"
	for _, end := range []string{"\r\n", "\r", "\u0085"} {
		o, _, err := readConfig(t, "\ufeff---\n"+strings.ReplaceAll(text, "\n", end)+"---\n# the end\n")
		if err != nil || len(o.ClusterCIDRs) != 1 {
			t.Errorf("line end %+q: cluster CIDRs %v: %v", end, o.ClusterCIDRs, err)
		}
	}
	for name, more := range map[string]string{
		"config.yaml: line 4: a second document": "---\n" + head,
		"config.yaml: line 4: holds NUL":         "# \x00\n",
		"config.yaml: line 5: holds NUL":         "---\n# \xff\n",
	} {
		if _, _, err := readConfig(t, text+more); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: got error %v, want %q", more, err, name)
		}
	}
}

// TestFieldsExist: every name in the table is a field of the type. Otherwise its flag is never set.
func TestFieldsExist(t *testing.T) {
	full := &kubeproxy.KubeProxyConfiguration{}
	fill(reflect.ValueOf(full).Elem())
	have := map[string]bool{}
	for _, l := range leaves(full) {
		have[l.path] = true
	}
	o := Defaults()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(fs)
	for field, flag := range flagOfField() {
		if !have[field] {
			t.Errorf("KubeProxyConfiguration has no field %s", field)
		}
		if fs.Lookup(flag) == nil {
			t.Errorf("field %s: there is no flag --%s", field, flag)
		}
	}
}

// fill sets every exported field below v to something that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint32:
		v.SetUint(1)
	case reflect.Float32:
		v.SetFloat(1)
	}
}

// TestDocsOfIPVS: docs/ipvs.md has every flag of the mode, with its default, and no other.
func TestDocsOfIPVS(t *testing.T) {
	text, err := os.ReadFile("../../../docs/ipvs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, fs, _ := parse(t)
	documented := map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| `--") || len(cells) < 4 {
			continue
		}
		flags, defaults := strings.Split(cells[1], ","), strings.Split(cells[2], ",")
		for i, flag := range flags {
			documented[strings.Trim(flag, " `-")] = strings.Trim(defaults[min(i, len(defaults)-1)], " `")
		}
	}
	fs.VisitAll(func(f *pflag.Flag) {
		if !strings.HasPrefix(f.Name, "ipvs-") {
			return
		}
		want := f.DefValue
		if d, err := time.ParseDuration(want); err == nil {
			got, err := time.ParseDuration(documented[f.Name])
			if err != nil || got != d {
				t.Errorf("--%s: the default is %s, docs/ipvs.md says %q", f.Name, d, documented[f.Name])
			}
		} else if got := documented[f.Name]; got != want && (want != "" || got != "none") {
			t.Errorf("--%s: the default is %q, docs/ipvs.md says %q", f.Name, want, got)
		}
		delete(documented, f.Name)
	})
	for name := range documented {
		t.Errorf("docs/ipvs.md has --%s, which does not exist", name)
	}
}
