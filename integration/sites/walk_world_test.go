package sites

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// walk is a whole cluster of six Nodes without labels of units, and the controller that is shipped.
type walk struct {
	*nodes.Cluster
	t          *testing.T
	controller *nodes.GridController
	count      *nodes.Count
	witness    *witness
}

// inAll is the label of the unit of all Nodes.
const inAll = "unit-node-all=nodeunits.superedge.io"

func newWalk(t *testing.T) *walk {
	t.Helper()
	w := &walk{t: t, count: &nodes.Count{}}
	w.Cluster = nodes.ForTest(t, nodes.Options{Manifests: []string{"../../deploy/crds"}})
	for _, site := range []string{"bj", "gz"} {
		for _, n := range w.nodes(site) {
			w.AddNode(t, n, nil)
		}
	}
	// What an admin has set is in the units' way from the beginning.
	w.MustKubectl(t, "label", "node", "bj-1", "bj-3", "gz-2", "rack=7")
	w.MustKubectl(t, "taint", "node", "bj-1", "admin=yes:PreferNoSchedule")
	options := nodes.AsShipped()
	// Units go more often than 5 % of two an hour.
	options.Flags = append(options.Flags, "--unit-removal-grace=3s", "--unit-removal-budget=100%")
	options.Count = w.count
	w.witness = newWitness(t, w.Admin())
	w.controller = w.GridController(t, options)
	w.controller.WaitReady(t)
	return w
}

// in is the walk with the test that a failure ends.
func (w *walk) in(t *testing.T) *walk {
	w.t = t
	return w
}

func since(begin time.Time) time.Duration { return time.Since(begin).Round(10 * time.Millisecond) }

func (w *walk) nodes(site string) []string { return []string{site + "-1", site + "-2", site + "-3"} }

// others are the labels that an admin has set on a Node, with a space before each, without some
// keys.
func (w *walk) others(node string, also ...string) string {
	var out []string
	if slices.Contains([]string{"bj-1", "bj-3", "gz-2"}, node) {
		out = append(out, "rack=7")
	}
	if slices.Contains(also, "zone") && node == "gz-1" {
		out = append(out, "zone=z2")
	}
	return strings.Join(append([]string{""}, out...), " ")
}

func (w *walk) get(what, path string) string {
	w.t.Helper()
	return w.MustKubectl(w.t, "get", what, "-o", "jsonpath="+path)
}

func (w *walk) patch(kind, name, patch string) {
	w.t.Helper()
	w.MustKubectl(w.t, "patch", kind, name, "--type=merge", "-p", patch)
}

// prints waits until kubectl prints a table, whatever the ages and the order of the lines.
func (w *walk) prints(want string, args ...string) {
	w.t.Helper()
	wait.Until(w.t, "kubectl "+strings.Join(args, " ")+" prints what is wanted", func() error {
		out, err := w.Kubectl(args...)
		if err != nil {
			return err
		}
		return unlike(table(out), table(want))
	})
}

// table is kubectl's table without the spaces and the last column, which is the age.
func table(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		if cells := strings.Fields(line); len(cells) > 0 {
			lines = append(lines, strings.Join(cells[:len(cells)-1], "  "))
		}
	}
	slices.Sort(lines[min(1, len(lines)):]) // kubectl prints nothing where there is nothing
	return strings.Join(lines, "\n")
}

// recordedLine is of fields of the status that SuperEdge does not have.
var recordedLine = regexp.MustCompile(`(?m)^ *(Restricted Recorded|Settled Generation): .*$`)

// describes waits until kubectl describe prints the manual's facts, all of them from the spec on.
func (w *walk) describes(kind, name, want string) {
	w.t.Helper()
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	wait.Until(w.t, fmt.Sprintf("kubectl describe %s %s prints what is wanted", kind, name), func() error {
		out, err := w.Kubectl("describe", kind, name)
		if err != nil {
			return err
		}
		head, facts, _ := strings.Cut(out, "\nSpec:")
		facts = recordedLine.ReplaceAllString(facts, "")
		if !strings.Contains(words(head), "API Version: site.superedge.io/v1alpha2 Kind:") {
			return fmt.Errorf("it is not of v1alpha2: %s", head)
		}
		return unlike(words("Spec:"+facts), words(want))
	})
}

// labels waits until a Node has exactly these labels besides those of Kubernetes.
func (w *walk) labels(node, want string) {
	w.t.Helper()
	wait.Until(w.t, "labels of Node "+node, func() error {
		n, err := w.Client.CoreV1().Nodes().Get(w.t.Context(), node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var all []string
		for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
			if !strings.Contains(key, "kubernetes.io/") {
				all = append(all, key+"="+n.Labels[key])
			}
		}
		wanted := strings.Fields(want)
		slices.Sort(wanted)
		return unlike(strings.Join(all, " "), strings.Join(wanted, " "))
	})
}

// labelsOf waits until each Node of a site has exactly these labels, those of the unit of all
// Nodes and those of an admin.
func (w *walk) labelsOf(site, want string) {
	w.t.Helper()
	for _, n := range w.nodes(site) {
		w.labels(n, want+inAll+w.others(n))
	}
}

// pods are the Nodes of a unit's Pods, or of all, by UID.
func (w *walk) pods(unit string) map[string]string {
	w.t.Helper()
	list, err := w.Client.CoreV1().Pods("default").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	nodes := map[string]string{}
	for _, p := range list.Items {
		if strings.HasPrefix(p.Name, "deploymentgrid-demo-"+unit) && p.DeletionTimestamp == nil {
			nodes[string(p.UID)] = p.Spec.NodeName
		}
	}
	return nodes
}

// standOn waits until the two Pods of a unit are on these Nodes.
func (w *walk) standOn(unit string, nodes ...string) {
	w.t.Helper()
	wait.Until(w.t, "the Pods of "+unit+" are on its Nodes", func() error {
		on := slices.Collect(maps.Values(w.pods(unit)))
		return wait.Check(len(on) == 2 && !slices.ContainsFunc(on, func(n string) bool { return !slices.Contains(nodes, n) }), "they are on %v", on)
	})
}

func (w *walk) aNodeWithPods(unit string) string {
	w.t.Helper()
	for _, node := range w.pods(unit) {
		return node
	}
	w.t.Fatalf("%s has no Pods", unit)
	return ""
}

// allowRemoval allows labels to be removed from Nodes although Grids or Services name their keys.
func (w *walk) allowRemoval(kind, name, keys string) {
	w.t.Helper()
	w.MustKubectl(w.t, "annotate", kind, name, "site.superedge.io/allow-removal="+keys)
}

// deletes deletes a unit or a group, and wants keys of labels to have left the Nodes before it is gone.
func (w *walk) deletes(kind, name string, keys ...string) {
	w.t.Helper()
	begin := time.Now()
	w.MustKubectl(w.t, "delete", kind, name)
	w.t.Logf("%s %s is gone %s after kubectl delete began", kind, name, since(begin))
	w.wantCleanBeforeGone(kind, name, keys...)
}

// wantCleanBeforeGone: whatever Nodes had of the object, the keys with the value that is its name,
// was gone in an earlier revision of the store than the object.
func (w *walk) wantCleanBeforeGone(kind, name string, keys ...string) {
	w.t.Helper()
	var gone, clean uint64
	wait.Until(w.t, kind+" "+name+" is gone, and its labels", func() error {
		if gone = w.witness.goneAt(kind, name); gone == 0 {
			return fmt.Errorf("it is there")
		}
		for _, key := range keys {
			value := ""
			if kind == "nodeunit" && key != name {
				value = name // the label of a group
			}
			last, left := w.witness.lastWith(key, value)
			if left {
				return fmt.Errorf("a Node has the label %s", key)
			}
			clean = max(clean, last)
		}
		return nil
	})
	if clean == 0 || clean > gone {
		w.t.Errorf("%s %s was gone at revision %d, the Nodes were clean at %d", kind, name, gone, clean)
	}
}

// events waits until an object's Events are these: type, reason and how often.
func (w *walk) events(kind, name, want string) {
	w.t.Helper()
	wait.Until(w.t, "the Events of "+kind+" "+name, func() error {
		list, err := w.Client.CoreV1().Events("").List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		counts := map[string]int{}
		for _, e := range list.Items {
			if !strings.EqualFold(e.InvolvedObject.Kind, kind) || e.InvolvedObject.Name != name {
				continue
			}
			times := 1
			if e.Series != nil {
				times = int(e.Series.Count)
			}
			counts[e.Type+" "+e.Reason] += times
		}
		var all []string
		for _, what := range slices.Sorted(maps.Keys(counts)) {
			all = append(all, what+" "+strconv.Itoa(counts[what]))
		}
		return unlike(strings.Join(all, ", "), want)
	})
}

// counts waits until the controller's metrics have these lines.
func (w *walk) counts(lines ...string) {
	w.t.Helper()
	wait.Until(w.t, "metrics", func() error {
		text, err := w.controller.Get(w.t.Context(), w.controller.Metrics, "/metrics")
		if err != nil {
			return err
		}
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line+"\n") {
				return fmt.Errorf("%s is not among them", line)
			}
		}
		return nil
	})
}
