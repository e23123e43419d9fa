package main

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/flips"
	"gridproxy/controller/removal"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// options are the flags. Their names are kube-controller-manager's where it has the same flag.
type options struct {
	kubeconfig string // "" = in-cluster
	qps        float32
	burst      int

	leaderElect    bool
	leaseNamespace string // "" = the Pod's own, else that of kube-controller-manager
	leaseName      string
	leaseDuration  time.Duration
	renewDeadline  time.Duration
	retryPeriod    time.Duration

	grace       grace
	budget      removal.Budget
	maxUnits    int
	newUnits    int      // of one Node within a day; 0: any number
	defaultUnit string   // "" = none is made
	namespaces  []string // whose Grids are expanded; none: all
	nodeUnits   bool     // NodeUnits and NodeGroups are applied to Nodes
	privileged  bool     // NodeUnits may set privileged labels and taints

	federation  string   // off, hub or member
	accept      []string // namespaces into which Grids of a hub may be put; none: all
	artifacts   address
	artifactURL string // "" = the Service of the chart

	metrics address
	healthz address

	logFormat string
	verbosity int
}

func defaults() options {
	return options{
		qps: 100, burst: 200,
		leaderElect: true, leaseName: "grid-controller",
		leaseDuration: 15 * time.Second, renewDeadline: 10 * time.Second, retryPeriod: 2 * time.Second,
		grace: grace(5 * time.Minute), budget: removal.Default(), maxUnits: 2000, newUnits: flips.Default, nodeUnits: true, defaultUnit: v1alpha2.DefaultUnit,
		federation: federationOff, artifacts: "0.0.0.0:9790",
		metrics: "0.0.0.0:8080", healthz: "0.0.0.0:8081",
		logFormat: "text",
	}
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", o.kubeconfig, "`FILE` that says how to reach the API server; without it: in-cluster")
	fs.Float32Var(&o.qps, "kube-api-qps", o.qps, "requests a second to the API server, all together but for those that renew the Lease")
	fs.IntVar(&o.burst, "kube-api-burst", o.burst, "requests to the API server that may come at once")
	fs.BoolVar(&o.leaderElect, "leader-elect", o.leaderElect, "work only while holding a Lease, so that several replicas can run")
	fs.StringVar(&o.leaseNamespace, "leader-elect-resource-namespace", o.leaseNamespace,
		"namespace of the Lease; without it the Pod's own, and outside of a cluster kube-system")
	fs.StringVar(&o.leaseName, "leader-elect-resource-name", o.leaseName, "name of the Lease")
	fs.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", o.leaseDuration,
		"how long a Lease stays valid without being renewed; at most "+leaseMax.String())
	fs.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", o.renewDeadline, "how long the leader tries to renew the Lease before it exits")
	fs.DurationVar(&o.retryPeriod, "leader-elect-retry-period", o.retryPeriod, "pause between attempts to get or renew the Lease")
	fs.Var(&o.grace, "unit-removal-grace", "how long the child of a unit without Nodes is kept, unless the child or its Grid says otherwise; never: for ever")
	fs.Var(&o.budget, "unit-removal-budget",
		"how many units of a Grid or NodeGroup are removed within an hour because they are lost, as a number or a percentage of its units, unless its annotation says otherwise")
	fs.IntVar(&o.maxUnits, "max-units", o.maxUnits,
		"how many units a Grid may have, or a NodeGroup may find; above that no child or NodeUnit is created, and existing ones are kept up to date")
	fs.IntVar(&o.newUnits, "new-units-per-node", o.newUnits,
		"how many new units one Node may bring to a Grid or NodeGroup within a day by its labels; 0: any number")
	fs.StringVar(&o.defaultUnit, "default-node-unit", o.defaultUnit,
		"name of the NodeUnit of all Nodes, created at the start if it is missing; empty: none is created")
	fs.StringSliceVar(&o.namespaces, "namespaces", o.namespaces,
		"expand the Grids of these namespaces only, and watch nothing in others; needs --node-units=false; without it: all")
	fs.BoolVar(&o.nodeUnits, "node-units", o.nodeUnits, "apply NodeUnits and NodeGroups to Nodes; false: Grids alone, for Nodes that are labelled otherwise")
	fs.BoolVar(&o.privileged, "allow-privileged-set-node", o.privileged,
		"let setNode of a NodeUnit set NoExecute taints and labels under node-role.kubernetes.io and node-restriction.kubernetes.io")
	command.AddWord(fs, &o.federation, "federation", "", "part in distributing Grids to several clusters: `off|hub|member`",
		federationOff, federationHub, federationMember)
	fs.StringSliceVar(&o.accept, "accept-namespaces", o.accept,
		"namespaces of this cluster into which Grids of the hub may be put; with --federation=member only; without it: all")
	fs.Var(&o.artifacts, "artifact-bind-address", "where Flux fetches archives of Grids; with --federation only")
	fs.StringVar(&o.artifactURL, "artifact-url", o.artifactURL,
		"`URL` by which Flux reaches --artifact-bind-address; without it that of the Service grid-artifacts")
	fs.Var(&o.metrics, "metrics-bind-address", "where /metrics is served; empty: nowhere")
	fs.Var(&o.healthz, "healthz-bind-address", "where /healthz and /readyz are served; empty: nowhere")
	command.AddWord(fs, &o.logFormat, "log-format", "", "how log lines look: `text|json`", "text", "json")
	fs.IntVarP(&o.verbosity, "v", "v", o.verbosity, "log verbosity: 0 for operators, more for the logs of libraries")
}

// check returns an error that joins the mistakes that parsing does not find.
func (o *options) check() error {
	var errs []error
	wrong := func(when bool, format string, args ...any) {
		if when {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(o.logFormat != "text" && o.logFormat != "json", "--log-format %s: want text or json", o.logFormat)
	wrong(o.qps <= 0, "--kube-api-qps %g: want requests a second, more than 0", o.qps)
	wrong(o.burst < 1, "--kube-api-burst %d: want a whole number, 1 or more", o.burst)
	wrong(o.maxUnits < 1, "--max-units %d: want a whole number, 1 or more", o.maxUnits)
	wrong(o.newUnits < 0, "--new-units-per-node %d: want a whole number, 0 or more", o.newUnits)
	wrong(o.retryPeriod <= 0 || o.renewDeadline*10 <= o.retryPeriod*12, // JitterFactor of client-go
		"--leader-elect-renew-deadline %s: want more than 1.2 times --leader-elect-retry-period %s", o.renewDeadline, o.retryPeriod)
	wrong(o.leaseDuration <= o.renewDeadline,
		"--leader-elect-lease-duration %s: want more than --leader-elect-renew-deadline %s", o.leaseDuration, o.renewDeadline)
	wrong(len(o.namespaces) > 0 && o.nodeUnits,
		"--namespaces needs --node-units=false: labels of NodeUnits must not vanish while a Service of any namespace uses them")
	wrong(len(o.namespaces) > namespacesMax, "--namespaces has %d names: want at most %d, or leave it out to watch all", len(o.namespaces), namespacesMax)
	for _, name := range o.namespaces {
		wrong(len(validation.IsDNS1123Label(name)) > 0, "--namespaces %q: want names of namespaces, separated by commas", name)
	}
	wrong(len(o.accept) > 0 && o.federation != federationMember, "--accept-namespaces needs --federation=member: it is about Grids that a hub sends")
	wrong(len(o.accept) > namespacesMax, "--accept-namespaces has %d names: want at most %d, or leave it out to take Grids into all", len(o.accept), namespacesMax)
	for _, name := range o.accept {
		wrong(len(validation.IsDNS1123Label(name)) > 0, "--accept-namespaces %q: want names of namespaces, separated by commas", name)
	}
	wrong(o.leaseDuration < time.Second, "--leader-elect-lease-duration %s: want at least 1s", o.leaseDuration)
	wrong(o.leaseDuration > leaseMax,
		"--leader-elect-lease-duration %s: want at most %s, because no replica takes over from a lost leader before", o.leaseDuration, leaseMax)
	wrong(o.artifactURL != "" && !isArtifactURL(o.artifactURL),
		"--artifact-url %q: want the address where Flux reaches --artifact-bind-address, such as http://grid-artifacts.gridproxy.svc.cluster.local", o.artifactURL)
	errs = append(errs, o.checkFederation())
	return errors.Join(errs...)
}

const never = "never"

// grace is a flag: a duration. A negative one is written "never".
type grace time.Duration

// String returns the flag's value.
func (g *grace) String() string {
	if *g < 0 {
		return never
	}
	return time.Duration(*g).String()
}

// Type returns what the help calls the argument.
func (g *grace) Type() string { return "duration|never" }

// Set parses the flag's value.
func (g *grace) Set(text string) error {
	d, err := removal.ParseGrace(text)
	if err != nil {
		return fmt.Errorf("want a duration such as 5m or 1h30m, 0s to delete at once, or never")
	}
	*g = grace(d)
	return nil
}

// address is a flag: where a server listens, or nothing.
type address string

// String returns the flag's value.
func (a *address) String() string { return string(*a) }

// Type returns what the help calls the argument.
func (a *address) Type() string { return "ip:port" }

// Set parses the flag's value.
func (a *address) Set(text string) error {
	if _, err := netip.ParseAddrPort(text); text != "" && err != nil {
		return fmt.Errorf("want IP:PORT such as 127.0.0.1:8080 or [::]:8080, or nothing for no server")
	}
	*a = address(text)
	return nil
}

// orNone returns the address as controller-runtime expects it: "0" disables a server.
func (a *address) orNone() string {
	if *a == "" {
		return "0"
	}
	return string(*a)
}
