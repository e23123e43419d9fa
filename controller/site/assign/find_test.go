package assign_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gridproxy/controller/api/site/v1alpha2"
	gridv1 "gridproxy/controller/api/v1"
	"gridproxy/controller/removal"
	"gridproxy/controller/site/assign"
)

// TestFoundNames: the names of units that a group finds; a missing key is no match; "/" and 64
// characters and more give 40 hexadecimal digits.
func TestFoundNames(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubelet", "localzone=eu-west-1")
	c.node("b", "kubelet", "kubernetes.io/hostname=vm-111-centos", "kubernetes.io/os=linux")
	c.group("zones", `{"autoFindNodeKeys": ["localzone"]}`)
	c.group("hosts", `{"autoFindNodeKeys": ["kubernetes.io/os", "kubernetes.io/hostname"]}`)
	c.settle()
	c.want("a", "eu-west-1=nodeunits.superedge.io localzone=eu-west-1 zones=eu-west-1")
	c.want("b", "hosts=vm-111-centos-linux kubernetes.io/hostname=vm-111-centos kubernetes.io/os=linux vm-111-centos-linux=nodeunits.superedge.io")
	if len(c.units) != 2 {
		t.Errorf("%d units, want 2", len(c.units))
	}
	// echo -n a/b | sha1sum
	if got := assign.FindName([]string{"a/b"}); got != "3ec69c85a4ff96830024afeef2d4e512181c8f7b" {
		t.Errorf("a/b gives %s", got)
	}
	for n, length := range map[int]int{63: 63, 64: 40} {
		if got := assign.FindName([]string{strings.Repeat("x", n)}); len(got) != length {
			t.Errorf("%d characters give %q", n, got)
		}
	}
}

// TestSharedFound: two groups with the same keys share their units, which belong to both: they go
// after the last of them.
func TestSharedFound(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubelet", "zone=z")
	c.group("g", `{"autoFindNodeKeys": ["zone"]}`)
	c.settle()
	c.group("h", `{"autoFindNodeKeys": ["zone", "zone"]}`)
	c.settle()
	c.want("a", "g=z h=z z=nodeunits.superedge.io zone=z")
	if got := c.units["z"].OwnerReferences; len(got) != 2 || got[1].Name != "h" || got[1].Controller != nil {
		t.Errorf("owners: %s", text(got))
	}
}

// TestFoundUnitsGo: the clock of lost units, for those that a group has found.
func TestFoundUnitsGo(t *testing.T) {
	c := newCluster(t)
	for _, n := range []string{"a", "b", "c"} {
		c.node(n, "kubelet", "zone="+n)
	}
	c.unit("d", `{"selector": {"matchLabels": {"zone": "d"}}}`) // a user's: stays
	c.group("g", `{"autoFindNodeKeys": ["zone"]}`)
	c.settle()
	lostAt := func(u string) string { return c.units[u].Annotations[gridv1.AnnotationLostAt] }
	delete(c.nodes, "a")
	c.settle()
	if lostAt("a") != "2026-01-02T12:00:00Z" || lostAt("b") != "" {
		t.Fatalf("the clock of a: %q, of b: %q", lostAt("a"), lostAt("b"))
	}
	if got := c.decide().Recheck; got != 5*time.Minute {
		t.Errorf("to be looked at again after %s, want 5m", got)
	}
	c.observed.Now = noon.Add(5*time.Minute - time.Second)
	if p := c.decide(); len(p.Delete) != 0 || p.Recheck != time.Second {
		t.Errorf("a second before: %s", text(p))
	}
	c.node("a", "kubelet", "zone=a")
	c.settle()
	if lostAt("a") != "" {
		t.Error("the Node is back, the clock still runs")
	}
	delete(c.nodes, "a")
	delete(c.nodes, "b")
	c.settle()
	c.observed.Now = noon.Add(time.Hour)
	c.wantSays(c.groups["g"].Status.Conditions, v1alpha2.ConditionDeletionHeld, "2 of 3 found units have no Node",
		"kubectl annotate --overwrite nodegroup g superedge.io/allow-unit-removal=a@2026-01-02T12:04:59Z,b@2026-01-02T12:04:59Z")
	if p := c.decide(); len(p.Delete) != 0 {
		t.Errorf("held, and yet: %s", text(p.Delete))
	}
	c.groups["g"].Annotations = map[string]string{gridv1.AnnotationAllowRemoval: "x, a, b@" + lostAt("b")}
	p := c.decide()
	if len(p.Delete) != 1 || p.Delete[0].Name != "b" || p.Delete[0].Labels["zone"] != "b" {
		t.Fatalf("b is released: %s", text(p.Delete))
	}
	c.units["b"].Annotations[gridv1.AnnotationRemovalGrace] = "never"
	if p := c.decide(); len(p.Delete) != 0 {
		t.Errorf("the unit says never, and yet: %s", text(p.Delete))
	}
	c.units["b"].Annotations[gridv1.AnnotationRemovalGrace] = "soon"
	c.settle()
	c.wantSays(c.units["b"].Status.Conditions, v1alpha2.ConditionInvalid, `"soon"`)
	delete(c.units["b"].Annotations, gridv1.AnnotationRemovalGrace)
	if p := c.decide(); len(p.Delete) != 1 || p.Delete[0].Name != "b" {
		t.Errorf("b alone is to go: %s", text(p.Delete))
	}
	// Once it has gone, one of two is lost, which is not most of them.
	c.settle()
	if len(c.units) != 2 || c.units["c"] == nil || c.units["d"] == nil {
		t.Errorf("c and the user's d are to stay: %v", c.units)
	}
}

// TestHold: k of n found units are lost: at k ≥ 2 and 2k > n none is removed.
func TestHold(t *testing.T) {
	for _, of := range []struct {
		lost, all int
		held      bool
	}{{1, 1, false}, {1, 2, false}, {2, 2, true}, {2, 3, true}, {2, 4, false}, {3, 6, false}, {4, 6, true}} {
		c := newCluster(t)
		c.observed.Grace, c.observed.Budget = 0, budget(t, "100%")
		loseUnits(c, of.lost, of.all)
		if held := len(c.units) == of.all; held != of.held || !held && len(c.units) != of.all-of.lost {
			t.Errorf("%d of %d lost: %d are left; held: %t, want %t", of.lost, of.all, len(c.units), held, of.held)
		}
	}
}

func budget(t testing.TB, text string) removal.Budget {
	t.Helper()
	b, err := removal.ParseBudget(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// loseUnits has group g find a unit for each Node, and deletes the first Nodes.
func loseUnits(c *cluster, lost, of int) {
	for i := range of {
		c.node(fmt.Sprintf("n%02d", i), "kubelet", fmt.Sprintf("zone=z%02d", i))
	}
	c.group("g", `{"autoFindNodeKeys": ["zone"]}`)
	c.settle()
	for i := range lost {
		delete(c.nodes, fmt.Sprintf("n%02d", i))
	}
	c.settle()
}

// TestRemovalBudget: of 20 found units 8 lose their Nodes, too few for a hold. One is removed an
// hour, as 5 % are, whichever controller decides, and the group says that the others wait. A place
// is in the group's status before the unit is deleted. Releases need none.
func TestRemovalBudget(t *testing.T) {
	c := newCluster(t)
	loseUnits(c, 8, 20)
	left := func() int {
		t.Helper()
		c.settle()
		return len(c.units)
	}
	c.observed.Now = noon.Add(5 * time.Minute)
	if p := c.decide(); len(p.Delete) > 0 || len(p.Groups) != 1 {
		t.Fatalf("a unit is deleted before its place is written: %s", text(p))
	}
	if n := left(); n != 19 || c.units["z00"] != nil {
		t.Fatalf("%d units are left, want 19 without z00", n)
	}
	c.wantSays(c.groups["g"].Status.Conditions, v1alpha2.ConditionDeletionHeld,
		"7 units are lost and wait: at most 1 of 19", "allow-unit-removal=z01@2026-01-02T12:00:00Z,")
	if p := c.decide(); p.Recheck <= 0 || p.Recheck > time.Hour+time.Second {
		t.Errorf("to be looked at again after %s", p.Recheck)
	}
	c.observed.Now = noon.Add(64 * time.Minute)
	if n := left(); n != 19 {
		t.Errorf("%d units are left before the hour is over", n)
	}
	c.observed.Now, c.observed.Watched = noon.Add(66*time.Minute), noon.Add(65*time.Minute) // another leader
	if n := left(); n != 19 {
		t.Errorf("%d units are left, though the leader has watched for a minute only", n)
	}
	c.observed.Now = noon.Add(67 * time.Minute)
	if n := left(); n != 18 || c.units["z01"] != nil {
		t.Errorf("%d units are left, want 18", n)
	}
	c.groups["g"].Annotations = map[string]string{gridv1.AnnotationAllowRemoval: "z03, z04@2026-01-02T12:00:00Z,z05@2026-01-02T11:00:00Z,z19@2026-01-02T12:00:00Z"}
	if n := left(); n != 17 || c.units["z04"] != nil {
		t.Errorf("%d units are left, want 17 without the released z04", n)
	}
	c.wantSays(c.groups["g"].Status.Conditions, v1alpha2.ConditionInvalid,
		`"z03"`, "write z03@2026-01-02T12:00:00Z", "write z05@", `"z19@2026-01-02T12:00:00Z"`, "no unit of that name is lost")
	c.groups["g"].Annotations = map[string]string{gridv1.AnnotationRemovalBudget: "three"}
	c.observed.Now = noon.Add(100 * time.Hour)
	if n := left(); n != 17 {
		t.Errorf("%d units are left with a mistyped budget", n)
	}
	c.wantSays(c.groups["g"].Status.Conditions, v1alpha2.ConditionInvalid, `"three" is neither`)
	c.groups["g"].Annotations = map[string]string{gridv1.AnnotationRemovalBudget: "3"}
	if n := left(); n != 14 {
		t.Errorf("%d units are left, want 14", n)
	}
}

// TestSameUnitTwice: a place is for one loss of a unit.
func TestSameUnitTwice(t *testing.T) {
	c := newCluster(t)
	c.observed.Grace = 0
	loseUnits(c, 0, 20)
	for round, goes := range []bool{true, false} {
		delete(c.nodes, "n00")
		c.settle()
		if gone := c.units["z00"] == nil; gone != goes {
			t.Errorf("loss %d: the unit has gone: %t", round, gone)
		}
		c.node("n00", "kubelet", "zone=z00")
		c.settle()
		c.observed.Now = c.observed.Now.Add(5 * time.Minute)
	}
}

// TestRowsAreFull: above the number of rows that a status has, units wait for the oldest row to
// end.
func TestRowsAreFull(t *testing.T) {
	c := newCluster(t)
	c.observed.Budget = budget(t, "100%")
	loseUnits(c, 250, 600)
	c.observed.Now = c.observed.Now.Add(10 * time.Minute)
	c.settle()
	if p := c.decide(); len(c.units) != 400 || len(p.Delete) > 0 || p.Recheck < 59*time.Minute {
		t.Errorf("%d units are left, %d are deleted next, looked at again after %s", len(c.units), len(p.Delete), p.Recheck)
	}
}

// TestNewUnits: a Node that takes a thousand values within three hours has a group find five units
// more than its ten. No removal is held for that, and a real new site has its unit immediately.
// Above the limit of units none is made.
func TestNewUnits(t *testing.T) {
	c := newCluster(t)
	c.observed.NewUnits, c.observed.MaxUnits, c.observed.Budget = 5, 100, budget(t, "100%")
	for i := range 10 {
		c.node(fmt.Sprint("n", i), "kubelet", fmt.Sprint("zone=z", i))
	}
	c.group("g", `{"autoFindNodeKeys": ["zone"]}`)
	c.settle()
	found, reports := map[string]bool{}, 0
	turn := func() assign.Plan {
		p := c.decide()
		reports += len(p.Refused)
		c.observed.Flips = p.Flips
		c.settle()
		for name := range c.units {
			found[name] = true
		}
		return p
	}
	for i := range 1000 {
		c.node("evil", "kubelet", fmt.Sprint("zone=evil-", i))
		turn()
		for _, condition := range c.groups["g"].Status.Conditions {
			t.Fatalf("with %d values: %s", i, text(condition))
		}
		c.observed.Now = c.observed.Now.Add(10 * time.Second)
	}
	if len(found) != 15 || reports != 3 {
		t.Fatalf("%d units, %d reports", len(found), reports)
	}
	c.node("evil", "kubelet", "zone=site")
	c.node("honest", "kubelet", "zone=site")
	if turn(); c.units["site"] == nil {
		t.Fatal("a new site has no unit")
	}
	c.node("evil", "kubelet", "zone=later")
	p := turn()
	c.observed.Now = c.observed.Now.Add(p.Recheck)
	if turn(); c.units["later"] == nil || !c.observed.Now.Equal(noon.Add(24*time.Hour)) {
		t.Fatalf("no unit at %s", c.observed.Now)
	}
	c.observed.MaxUnits = len(c.units)
	c.node("more", "kubelet", "zone=more")
	if turn(); c.units["more"] != nil || !strings.Contains(text(c.groups["g"].Status), "TooManyUnits") {
		t.Fatalf("above the limit: %s", text(c.groups["g"].Status))
	}
	c.observed.MaxUnits++
	if turn(); c.units["more"] == nil {
		t.Fatal("no unit when there is room")
	}
}

// TestTakenName: a Node whose values form the name of another Node's unit does not take it away.
func TestTakenName(t *testing.T) {
	c := newCluster(t)
	c.node("honest", "kubelet", "a=x-y", "b=z")
	c.group("g", `{"autoFindNodeKeys": ["a", "b"]}`)
	c.settle()
	c.node("evil", "kubelet", "a=x", "b=y-z") // sorts first
	c.settle()
	c.want("honest", "a=x-y b=z g=x-y-z x-y-z=nodeunits.superedge.io")
	c.want("evil", "a=x b=y-z")
	delete(c.nodes, "honest")
	c.settle()
	c.node("honest", "kubelet", "a=x-y", "b=z")
	c.settle()
	c.want("honest", "a=x-y b=z g=x-y-z x-y-z=nodeunits.superedge.io")
	c.want("evil", "a=x b=y-z")
}
