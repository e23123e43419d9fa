package options

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/util/validation"
)

// value is a pflag.Value with a parser. pflag writes the flag's name and the argument before the
// parser's error, so that this error says only what is expected.
type value[T any] struct {
	to    *T
	parse func(string) (T, error)
	print func(T) string
	typ   string   // name of the argument in the help
	words []string // that a shell offers; none = any text
}

func flagOf[T any](to *T, parse func(string) (T, error), print func(T) string, typ string) value[T] {
	return value[T]{to: to, parse: parse, print: print, typ: typ}
}

func (v value[T]) String() string {
	if v.to == nil {
		return ""
	}
	return v.print(*v.to)
}

func (v value[T]) Type() string { return v.typ }

// Words returns the values that a shell offers.
func (v value[T]) Words() []string { return v.words }

// offering returns v with words that a shell offers.
func offering[T any, W ~string](v value[T], words ...W) value[T] {
	v.words = texts(words)
	return v
}

// choice returns the value of a flag that is one of a few words.
func choice[T ~string](to *T, typ string, words ...T) value[T] {
	return offering(flagOf(to, oneOf(words...), printWord, typ), words...)
}

func (v value[T]) Set(text string) error {
	parsed, err := v.parse(text)
	if err == nil {
		*v.to = parsed
	}
	return err
}

// list is a value that a repeated flag adds to, as pflag's StringSlice does.
type list[T any] struct {
	value[T]
	given []string // what is there so far; none = the default
}

func listOf[T any](to *T, parse func(string) (T, error), print func(T) string, typ string) *list[T] {
	return &list[T]{value: flagOf(to, parse, print, typ)}
}

func (l *list[T]) Set(text string) error {
	given := l.given
	if text != "" {
		given = append(given, text)
	}
	err := l.value.Set(strings.Join(given, ","))
	if err == nil {
		l.given = given
	}
	return err
}

func oneOf[T ~string](words ...T) func(string) (T, error) {
	return func(text string) (T, error) {
		if slices.Contains(words, T(text)) {
			return T(text), nil
		}
		return "", fmt.Errorf("want %s", alternatives(words))
	}
}

func alternatives[T ~string](words []T) string {
	last := len(words) - 1
	if last == 0 {
		return string(words[0])
	}
	return strings.Join(texts(words[:last]), ", ") + " or " + string(words[last])
}

func texts[T ~string](words []T) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return all
}

func printWord[T ~string](v T) string { return string(v) }

func parsePrefixes(text string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		p, err := topology.ParsePrefix(part) // as kube-proxy, which takes leading zeros
		if err != nil {
			return nil, fmt.Errorf("%q is not a CIDR; want something like 10.244.0.0/16, with commas between several", part)
		}
		prefixes = append(prefixes, p)
	}
	return prefixes, nil
}

func printList[T fmt.Stringer](list []T) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = v.String()
	}
	return strings.Join(words, ",")
}

// The keywords of --nodeport-addresses, as in kube-proxy 1.37.
const (
	keywordPrimary   = "primary"
	keywordLocalhost = "localhost"
	keywordAll       = "all"
)

// parseNodePortAddresses parses keywords and CIDRs in any mix, with commas between them. Two
// keywords are only other words for CIDRs. Which addresses primary means is known later.
func parseNodePortAddresses(text string) (rules.NodePortAddresses, error) {
	var a rules.NodePortAddresses
	var seen []string
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" && text != "" {
			return rules.NodePortAddresses{}, fmt.Errorf("%q has an empty element, which would mean every address; want keywords and CIDRs with commas between them, or no value at all", text)
		}
		cidrs := part
		switch part {
		case keywordPrimary:
			a.Primary, cidrs = true, ""
		case keywordLocalhost:
			cidrs = "127.0.0.0/8,::1/128"
		case keywordAll:
			cidrs = "0.0.0.0/0,::/0"
		}
		if cidrs != part && slices.Contains(seen, part) {
			return rules.NodePortAddresses{}, fmt.Errorf("the keyword %s is there twice; want it once", part)
		}
		seen = append(seen, part)
		prefixes, err := parsePrefixes(cidrs)
		if err != nil {
			return rules.NodePortAddresses{}, fmt.Errorf("want the keywords primary, localhost and all, and CIDRs, with commas between them: %w", err)
		}
		a.Prefixes = append(a.Prefixes, prefixes...)
	}
	return a, nil
}

func printNodePortAddresses(a rules.NodePortAddresses) string {
	cidrs := printList(a.Prefixes)
	if a.Primary {
		return strings.TrimSuffix(keywordPrimary+","+cidrs, ",")
	}
	return cidrs
}

// parseDetectLocalMode takes an empty text for the default, as kube-proxy does.
func parseDetectLocalMode(text string) (rules.DetectLocalMode, error) {
	if text == "" {
		return rules.DetectClusterCIDR, nil
	}
	return oneOf(detectLocalModes()...)(text)
}

func detectLocalModes() []rules.DetectLocalMode {
	return []rules.DetectLocalMode{rules.DetectClusterCIDR, rules.DetectNodeCIDR, rules.DetectBridgeInterface, rules.DetectInterfaceNamePrefix}
}

// parseMaster returns text if it is the address of an API server, as clients of Kubernetes take
// it: a URL, or HOST:PORT. It may be empty.
func parseMaster(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	full := text
	if !strings.Contains(text, "://") {
		full = "https://" + text
	}
	u, err := url.Parse(full)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", fmt.Errorf("want the address of an API server, such as https://192.168.0.10:6443")
	}
	return text, nil
}

// parseScore parses a value of oom_score_adj. An empty text gives nil: no change.
func parseScore(text string) (*int16, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 16)
	if err != nil || n < -1000 || n > 1000 {
		return nil, fmt.Errorf("want a number, -1000 to 1000")
	}
	return new(int16(n)), nil
}

func printScore(score *int16) string {
	if score == nil {
		return ""
	}
	return strconv.Itoa(int(*score))
}

// parseVersionFlag returns true for true and, as in kube-proxy, raw; another version is an
// error.
func parseVersionFlag(text string) (bool, error) {
	if text == "raw" {
		return true, nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("want true, raw or false")
	}
	return b, nil
}

// parseServers parses HOST:PORT,..., a list in the order in which the servers are tried.
func parseServers(text string) ([]string, error) {
	var servers []string
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		host, port, err := net.SplitHostPort(part)
		if n, e := strconv.ParseUint(port, 10, 16); err != nil || host == "" || e != nil || n == 0 {
			return nil, fmt.Errorf("%q is not HOST:PORT; want something like 192.168.0.10:6443 or [fd00::10]:6443, with commas between several, and no https://", part)
		}
		servers = append(servers, part)
	}
	return servers, nil
}

func printServers(servers []string) string { return strings.Join(servers, ",") }

// parseProxyName parses the value of a label.
func parseProxyName(text string) (string, error) {
	if problems := validation.IsValidLabelValue(text); len(problems) > 0 {
		return "", fmt.Errorf("not the value of a label: %s", problems[0])
	}
	return text, nil
}

func parseMasqueradeBit(text string) (uint8, error) {
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil || n > 31 {
		return 0, fmt.Errorf("want a bit of the packet mark, 0 to 31")
	}
	return uint8(n), nil
}

func printNumber[T ~uint8 | ~int32 | ~int](n T) string { return strconv.Itoa(int(n)) }

func parseCount(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("want a whole number, 0 or more")
	}
	return int32(n), nil
}

// parseDuration returns a parser of Go durations from least to most.
func parseDuration(least, most time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("want a duration such as 500ms, 10s or 1h30m")
		}
		if d < least {
			return 0, fmt.Errorf("want at least %s", least)
		}
		if d > most {
			return 0, fmt.Errorf("want at most %s", most)
		}
		return d, nil
	}
}

func parseQPS(text string) (float32, error) {
	q, err := strconv.ParseFloat(text, 32)
	if err != nil || q <= 0 {
		return 0, fmt.Errorf("want requests a second, more than 0")
	}
	return float32(q), nil
}

func printQPS(q float32) string { return strconv.FormatFloat(float64(q), 'g', -1, 32) }

func parseNodeName(text string) (string, error) {
	if text == "" { // a DaemonSet passes an unset variable like this; the command decides
		return "", nil
	}
	name := strings.ToLower(strings.TrimSpace(text))
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return "", fmt.Errorf("not the name of a Node: %s", problems[0])
	}
	return name, nil
}

func parseInterface(text string) (string, error) {
	if len(text) > interfaceNameMax || strings.ContainsAny(text, "/ \t\n+") {
		return "", fmt.Errorf("not the name of a network interface: at most %d characters, without spaces, / and +", interfaceNameMax)
	}
	return text, nil
}

// word returns the value of a flag whose parser returns a text.
func word(to *string, typ string, parse func(string) (string, error)) value[string] {
	return flagOf(to, parse, printWord, typ)
}

// parseScheduler accepts every scheduler of IPVS, and takes an empty text for the default. The
// daemon checks at its start whether the kernel has it.
func parseScheduler(text string) (string, error) {
	if text == "" { // as in the file of kubeadm
		return ipvs.DefaultScheduler, nil
	}
	return oneOf(ipvs.Schedulers()...)(text)
}

func parseFamily(text string) (netfilter.Family, error) {
	switch strings.ToLower(text) {
	case "ipv4":
		return netfilter.IPv4, nil
	case "ipv6":
		return netfilter.IPv6, nil
	default:
		return 0, fmt.Errorf("want ipv4 or ipv6")
	}
}

func printFamily(f netfilter.Family) string {
	if f == netfilter.IPv6 {
		return "ipv6"
	}
	return "ipv4"
}
