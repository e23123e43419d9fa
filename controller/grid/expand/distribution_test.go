package expand

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// reporting is a member whose Grid has units in some phases, with a row for each.
func reporting(name string, units map[string]v1.UnitPhase) Member {
	r := &MemberReport{States: map[string]v1.State{}}
	for _, value := range slices.Sorted(maps.Keys(units)) {
		row := v1.UnitStatus{Value: value, Child: "web-" + value, Nodes: 1, Replicas: 2, Phase: units[value]}
		r.Status.UnitNumber++
		switch row.Phase {
		case v1.UnitReady:
			r.Ready, row.ReadyReplicas = r.Ready+1, 2
		case v1.UnitFailed:
			r.Status.FailedUnits++
			row.Reason, row.Message = ReasonRefused, fmt.Sprintf("web-%s is refused", value)
		case v1.UnitOffline:
			r.Status.OfflineUnits++
		case v1.UnitLost:
			row.Nodes, r.Status.LostUnits, r.Status.UnitNumber = 0, r.Status.LostUnits+1, r.Status.UnitNumber-1
		}
		r.Status.Units = append(r.Status.Units, row)
		r.States[value] = v1.State{JSON: fmt.Appendf(nil, `{"in":%q}`, name)}
	}
	return Member{Name: name, State: StateCurrent, Report: r}
}

func ready(values ...string) map[string]v1.UnitPhase {
	units := map[string]v1.UnitPhase{}
	for _, v := range values {
		units[v] = v1.UnitReady
	}
	return units
}

// distributed is a Grid with some units here, all ready, and in members.
func distributed(t tester, own []string, members ...Member) (Observed, v1.WorkloadGridStatus, map[string]v1.State) {
	c := newCluster(t, own...)
	c.reconcile()
	for _, l := range c.objects {
		l.State = []byte(`{"in":"hub"}`)
	}
	o := c.observe(nil)
	o.Fleet = append([]Member{}, members...)
	s, states := Report(o)
	return o, s, states
}

func words(all ...any) string { return strings.TrimSpace(fmt.Sprintln(all...)) }

func rowTexts(s v1.WorkloadGridStatus) (texts []string) {
	for _, r := range s.Units {
		texts = append(texts, words(UnitName(r), r.Phase, r.Reason))
	}
	return texts
}

func conditionText(all []metav1.Condition, of string) string {
	for _, c := range all {
		if c.Type == of {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

// TestDistributed: what is in three clusters is in one status.
func TestDistributed(t *testing.T) {
	east := reporting("east", map[string]v1.UnitPhase{"a": v1.UnitReady, "zone1": v1.UnitReady, "x": v1.UnitOffline})
	west := reporting("west", map[string]v1.UnitPhase{"b": v1.UnitFailed, "zone1": v1.UnitReady, "gone": v1.UnitLost})
	west.Report.Status.UnitNumber, west.Report.Ready, west.Report.Status.OfflineUnits = 12, 9, 1 // nine units have no row
	_, s, states := distributed(t, []string{"a", "hub"}, west, east)
	if d := cmp.Diff([]string{
		"west/gone Lost", "west/b Failed Refused", "east/x Offline", "a Ready", "hub Ready", "east/a Ready", "east/zone1 Ready", "west/zone1 Ready",
	}, rowTexts(s)); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	check(t, "totals", words(s.UnitNumber, s.ReadyRate, s.FailedUnits, s.LostUnits, s.OfflineUnits, s.OmittedUnits, s.ClusterRate), "17 13/18 1 1 2 10 1/2")
	var clusters []string
	for _, c := range s.Clusters {
		clusters = append(clusters, words(c.Name, c.State, c.Units, c.ReadyUnits))
	}
	check(t, "clusters", strings.Join(clusters, ", "), "west Current 12 9, east Current 3 2")
	check(t, "Ready", conditionText(s.Conditions, v1.ConditionReady), "False UnitsFailed: 1 of 18 units failed: west/b; 2 units offline: east/x and 1 more")
	check(t, "Progressing", conditionText(s.Conditions, v1.ConditionProgressing), "True UnitsProgressing: 1 of 18 units progressing")
	check(t, "DeletionHeld", conditionText(s.Conditions, v1.ConditionDeletionHeld), "False MostUnitsPresent: 0 of 2 units are lost")
	contains(t, conditionText(s.Conditions, v1.ConditionDegraded), "west/b: web-b is refused")
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(states)) {
		keys = append(keys, key+" "+string(states[key].JSON))
	}
	if d := cmp.Diff([]string{
		`a {"in":"hub"}`, `b {"in":"west"}`, `east/a {"in":"east"}`, `east/zone1 {"in":"east"}`, `gone {"in":"west"}`, `hub {"in":"hub"}`,
		`west/zone1 {"in":"west"}`, `x {"in":"east"}`,
	}, keys); d != "" {
		t.Errorf("states (-want +got):\n%s", d)
	}
}

// TestHubWithoutUnits: a hub that has no Nodes of the key is no fault, and nor are offline units.
func TestHubWithoutUnits(t *testing.T) {
	_, s, _ := distributed(t, nil, reporting("east", ready("a")), reporting("west", map[string]v1.UnitPhase{"b": v1.UnitReady, "c": v1.UnitOffline}))
	check(t, "Ready", conditionText(s.Conditions, v1.ConditionReady), "True UnitsReady: all 2 units with ready Nodes are ready; 1 unit offline: west/c; 2 of 2 clusters are ready")
	check(t, "Degraded", conditionText(s.Conditions, v1.ConditionDegraded), "False AsExpected: no unit has failed or is lost")
	check(t, "rate", s.ClusterRate, "2/2")
	_, s, _ = distributed(t, nil)
	contains(t, conditionText(s.Conditions, v1.ConditionReady), "Unknown NoUnits")
	check(t, "rate", s.ClusterRate, "0/0")
}

// TestClustersInConditions: what the conditions make of clusters that do not have the Grid as it
// is.
func TestClustersInConditions(t *testing.T) {
	state := func(name, state, message string) Member {
		m := reporting(name, ready("u"))
		m.State, m.Message = state, message
		return m
	}
	silent := state("west", StateCurrent, "")
	silent.SilentSince = start()
	unreported := Member{Name: "west", State: StateCurrent}
	wrong := state("west", StateCurrent, "")
	wrong.Report.Status.Conditions = []metav1.Condition{{Type: v1.ConditionReady, Status: metav1.ConditionFalse, Message: "the key is wrong"}}
	degraded := state("west", StateCurrent, "")
	degraded.Report.Status.Conditions = append(wrong.Report.Status.Conditions, metav1.Condition{Type: v1.ConditionDegraded, Status: metav1.ConditionTrue, Message: "the key is wrong"})
	for _, test := range []struct {
		what                         string
		members                      []Member
		ready, progressing, degraded string
		rate, first                  string
	}{
		{"behind", []Member{state("west", StateBehind, "wait"), state("east", StateCurrent, "")}, "False ClustersBehind: 1 of 2 clusters behind: west; all 3 units with Nodes are ready",
			"True ClustersBehind: 1 of 2 clusters behind: west", "False AsExpected: no unit has failed or is lost", "1/2", "west Behind wait"},
		{"many behind", []Member{state("e", StateBehind, ""), state("d", StateWaiting, ""), state("c", StateBehind, ""), state("b", "", ""), state("a", StateCurrent, "")},
			"False ClustersBehind: 4 of 5 clusters behind: b, c, d and 1 more; all 6 units with Nodes are ready", "True ClustersBehind: 4 of 5 clusters behind: b, c, d and 1 more",
			"False AsExpected: no unit has failed or is lost", "1/5", "b Waiting"},
		{"no report", []Member{unreported}, "False ClustersBehind: 1 of 1 clusters behind: west; all 1 units with Nodes are ready",
			"True ClustersBehind: 1 of 1 clusters behind: west", "False AsExpected: no unit has failed or is lost", "0/1", "west Waiting"},
		{"not applied", []Member{state("east", StateBehind, ""), state("west", "NameCollision", "rename it")},
			"False ClustersFailed: 1 of 2 clusters failed: west; west: NameCollision: rename it; all 3 units with Nodes are ready; 1 of 2 clusters behind: east",
			"True ClustersBehind: 1 of 2 clusters behind: east", "True ClustersFailed: 1 of 2 clusters failed: west; west: NameCollision: rename it", "0/2", "west NameCollision NameCollision: rename it"},
		{"silent", []Member{silent}, "False ClustersStale: 1 of 1 clusters stale: west; all 1 units with Nodes are ready",
			"False UnitsStable: no unit is changing", "False AsExpected: no unit has failed or is lost", "0/1", "west Stale silent since 2026-03-01T10:00:00Z; it was Current then"},
		{"not ready there", []Member{wrong}, "False ClustersProgressing: 1 of 1 clusters progressing: west; all 2 units with Nodes are ready",
			"True ClustersProgressing: 1 of 1 clusters progressing: west", "False AsExpected: no unit has failed or is lost", "0/1", "west Current the key is wrong"},
		{"degraded there", []Member{degraded}, "False ClustersFailed: 1 of 1 clusters failed: west; west: the key is wrong; all 2 units with Nodes are ready",
			"False UnitsStable: no unit is changing", "True ClustersFailed: 1 of 1 clusters failed: west; west: the key is wrong", "0/1", "west Current the key is wrong"},
	} {
		_, s, _ := distributed(t, []string{"a"}, test.members...)
		check(t, test.what+": Ready", conditionText(s.Conditions, v1.ConditionReady), test.ready)
		check(t, test.what+": Progressing", conditionText(s.Conditions, v1.ConditionProgressing), test.progressing)
		check(t, test.what+": Degraded", conditionText(s.Conditions, v1.ConditionDegraded), test.degraded)
		check(t, test.what+": rate", s.ClusterRate, test.rate)
		check(t, test.what+": first cluster", words(s.Clusters[0].Name, s.Clusters[0].State, s.Clusters[0].Message), test.first)
	}
}

// TestSilentMember: its rows stay and say what they were; none is ready.
func TestSilentMember(t *testing.T) {
	west := reporting("west", map[string]v1.UnitPhase{"a": v1.UnitReady, "b": v1.UnitFailed})
	west.Report.Status.UnitNumber, west.Report.Ready = 7, 6
	west.SilentSince = start().Add(time.Millisecond)
	_, s, states := distributed(t, nil, west)
	check(t, "rows", strings.Join(rowTexts(s), ", "), "west/a Stale ClusterSilent, west/b Stale ClusterSilent")
	check(t, "message", s.Units[1].Message, "its cluster is silent since 2026-03-01T10:00:00Z; it was Failed then: web-b is refused")
	check(t, "totals", words(s.UnitNumber, s.ReadyRate, s.FailedUnits, s.OmittedUnits, len(states)), "7 0/7 0 5 2")
	check(t, "Ready", conditionText(s.Conditions, v1.ConditionReady), "False ClustersStale: no unit is known to be ready; 1 of 1 clusters stale: west")
	check(t, "cluster", words(s.Clusters[0].Units, s.Clusters[0].ReadyUnits, s.Clusters[0].HeardAt.UTC().Format(time.RFC3339)), "7 0 2026-03-01T10:00:00Z")
}

// TestDistributedServiceGrid: it has clusters without units, and their condition Ready counts.
func TestDistributedServiceGrid(t *testing.T) {
	c := newServices(t)
	c.reconcile()
	o := c.observe([]string{"web-svc"})
	for _, test := range []struct {
		what   string
		status metav1.ConditionStatus
		silent bool
		want   string
	}{
		{"ready", metav1.ConditionTrue, false, "1/1 True ServiceReady: the Service is what the Grid asks for; 1 of 1 clusters are ready"},
		{"not ready", metav1.ConditionFalse, false, "0/1 False ClustersProgressing: 1 of 1 clusters progressing: west; the Service is what the Grid asks for"},
		{"unknown", "", false, "0/1 False ClustersProgressing: 1 of 1 clusters progressing: west; the Service is what the Grid asks for"},
		{"silent", metav1.ConditionTrue, true, "0/1 False ClustersStale: 1 of 1 clusters stale: west; the Service is what the Grid asks for"},
	} {
		m := Member{Name: "west", State: StateCurrent, Report: &MemberReport{}}
		if test.status != "" {
			m.Report.Status.Conditions = []metav1.Condition{{Type: v1.ConditionReady, Status: test.status}}
		}
		if test.silent {
			m.SilentSince = start()
		}
		o.Fleet = []Member{m}
		s := ServiceStatus(o)
		check(t, test.what, s.ClusterRate+" "+conditionText(s.Conditions, v1.ConditionReady), test.want)
	}
}

// drawMember is a member of a cluster that can lie.
func drawMember(t *rapid.T, name string) Member {
	text := rapid.SampledFrom([]string{"", "a", "web\x1b[31m", "<&>", strings.Repeat("京", 5000), "\xff\x00"})
	number := rapid.SampledFrom([]int32{-2147483648, -1, 0, 1, 3, 50, 1000, 2147483647})
	m := Member{Name: name, State: rapid.SampledFrom([]string{StateCurrent, StateBehind, StateWaiting, "", "NameCollision", strings.Repeat("x", 5000)}).Draw(t, "state"), Message: text.Draw(t, "message")}
	if rapid.IntRange(0, 3).Draw(t, "silent") == 0 {
		m.SilentSince = start()
	}
	if rapid.IntRange(0, 4).Draw(t, "no report") == 0 {
		return m
	}
	r := &MemberReport{Ready: number.Draw(t, "ready"), States: map[string]v1.State{}}
	r.Status.UnitNumber, r.Status.FailedUnits = number.Draw(t, "units"), number.Draw(t, "failed")
	r.Status.LostUnits, r.Status.OfflineUnits = number.Draw(t, "lost"), number.Draw(t, "offline")
	for i := range rapid.SampledFrom([]int{0, 1, 5, 400, 1500}).Draw(t, "rows") {
		value := fmt.Sprintf("v%d", i/rapid.IntRange(1, 2).Draw(t, "twice"))
		if i%50 == 3 {
			value = text.Draw(t, "value")
		}
		r.Status.Units = append(r.Status.Units, v1.UnitStatus{
			Cluster: "other", Value: value, Nodes: number.Draw(t, "nodes"), Child: text.Draw(t, "child"), Message: text.Draw(t, "message"), Reason: text.Draw(t, "reason"),
			Phase: rapid.SampledFrom([]v1.UnitPhase{v1.UnitReady, v1.UnitReady, v1.UnitFailed, v1.UnitLost, v1.UnitStale, "", "Invented", v1.UnitPhase(strings.Repeat("x", 9000))}).Draw(t, "phase"),
		})
		r.States[value] = v1.State{JSON: []byte(rapid.SampledFrom([]string{"", "{", `{"a":1}`, `"` + strings.Repeat("<", 500) + `"`}).Draw(t, "state of a unit"))}
	}
	m.Report = r
	return m
}

// TestReportsCanSayAnything: whatever members report, the status has its bounds, counts each unit
// once, says of each member only what that one says, and is never ready with one that is silent.
func TestReportsCanSayAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var members []Member
		for i := range rapid.SampledFrom([]int{0, 1, 3, 8}).Draw(t, "members") {
			members = append(members, drawMember(t, fmt.Sprintf("c%d", i)))
		}
		o, s, states := distributed(t, []string{"v0", "own"}, members...)
		checkDistributed(t, o, s, states)
		o.Now = o.Now.Add(time.Hour)
		for i := range o.Fleet { // in any order, after any time
			j := rapid.IntRange(0, i).Draw(t, "place")
			o.Fleet[i], o.Fleet[j] = o.Fleet[j], o.Fleet[i]
		}
		o.Status, o.Memo = s, nil
		again, sameStates := Report(o)
		if !reflect.DeepEqual(s, again) || !reflect.DeepEqual(states, sameStates) {
			t.Errorf("a second report of the same facts differs: %s", cmp.Diff(s, again))
		}
	})
}

func checkDistributed(t *rapid.T, o Observed, s v1.WorkloadGridStatus, states map[string]v1.State) {
	text, err := json.Marshal(v1.DeploymentGridStatus{WorkloadGridStatus: s, States: states})
	if err != nil || len(text) > maxStatusSize {
		t.Errorf("the status has %d bytes, %v", len(text), err)
	}
	own := o
	own.Fleet = nil
	alone := Status(own)
	total, readyUnits, silent, rows := int(alone.UnitNumber), 2, false, len(alone.Units)
	for _, m := range o.Fleet {
		f := readMember(o.Grid.Kind, m)
		total, readyUnits, rows = total+f.unitNumber, readyUnits+f.ready, rows+len(f.rows)
		silent = silent || !m.SilentSince.IsZero()
		if r := m.Report; r != nil && r.Status.UnitNumber > 0 && r.Status.UnitNumber <= countedMax && int(r.Status.UnitNumber) > f.unitNumber {
			t.Errorf("%s reports %d units, and %d count", m.Name, r.Status.UnitNumber, f.unitNumber)
		}
	}
	var gotReady, gotAll int
	if _, err := fmt.Sscanf(s.ReadyRate, "%d/%d", &gotReady, &gotAll); err != nil || gotReady != readyUnits || int(s.UnitNumber) != total || gotAll != len(s.Units)+int(s.OmittedUnits) {
		t.Errorf("%s ready of %d units, want %d of %d; %d rows, %d omitted", s.ReadyRate, s.UnitNumber, readyUnits, total, len(s.Units), s.OmittedUnits)
	}
	if len(s.Units) < min(rows, rowsMax) || len(s.Clusters) != len(o.Fleet) {
		checkFull(t, o, s, rows)
	}
	if r := conditionText(s.Conditions, v1.ConditionReady); silent && !strings.HasPrefix(r, "False ") {
		t.Errorf("with a silent member Ready is %s", r)
	}
	seen := map[string]bool{}
	for _, r := range s.Units {
		if name := UnitName(r); seen[name] || r.Cluster == "other" || len(r.Message) > rowMessageMax || r.Nodes < 0 || len(r.Child) > childBytesMax {
			t.Errorf("row %.80s is there twice: %t; it is %+.300v", name, seen[name], r)
		}
		seen[UnitName(r)] = true
		if r.Reason == "a" || r.Reason == "<&>" {
			t.Errorf("row %.80s has the reason %q that a cluster invented", UnitName(r), r.Reason)
		}
	}
}

// checkFull: rows are left out only where there is no room for one more.
func checkFull(t *rapid.T, o Observed, s v1.WorkloadGridStatus, of int) {
	a, d := assess(o), distributionOf(o)
	rows := a.rows(d)
	size := d.status(&v1.GridStatus{})
	for _, r := range fitRows(rows, rowsSizeMax)[:min(len(s.Units)+1, len(rows), rowsMax)] {
		size += sizeOf(r)
	}
	if size <= rowsSizeMax || len(s.Clusters) != len(o.Fleet) {
		t.Errorf("%d rows of %d in %d bytes, %d clusters of %d", len(s.Units), of, size, len(s.Clusters), len(o.Fleet))
	}
}

// TestManyClusters: each has a row as long as there is room; the worst keep their messages.
func TestManyClusters(t *testing.T) {
	var members []Member
	for i := range 1200 {
		m := reporting(fmt.Sprintf("edge-%04d", i), ready("a", "b"))
		if i%2 == 0 {
			m.State, m.Message = "NameCollision", strings.Repeat("rename it ", 100)
		}
		members = append(members, m)
	}
	_, s, states := distributed(t, nil, members...)
	text, err := json.Marshal(v1.DeploymentGridStatus{WorkloadGridStatus: s, States: states})
	if err != nil || len(text) > maxStatusSize || len(s.Clusters) != 1000 || s.ClusterRate != "600/1200" || s.ReadyRate != "2400/2400" {
		t.Errorf("%d bytes, %v; %d clusters, %s, %s", len(text), err, len(s.Clusters), s.ClusterRate, s.ReadyRate)
	}
	if first, last := s.Clusters[0].Message, s.Clusters[999].Message; len(first) < 200 || last != "" {
		t.Errorf("the first message is %q, the last %q", first, last)
	}
}
