package delivery

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

const hub = "hub-1"

// grid is a Grid of a hub's namespace, as a bundle has it.
func grid(namespace, name, uid string) Object {
	return Object{
		Key: Key{Kind: "DeploymentGrid", Namespace: namespace, Name: name}, From: hub + "/" + uid, Revision: "r1",
		JSON: fmt.Appendf(nil, `{"kind":"DeploymentGrid","metadata":{"namespace":%q,"name":%q,"uid":%q}}`, namespace, name, uid),
	}
}

func namespace(name string) Object {
	return Object{Key: Key{Kind: "Namespace", Name: name}, JSON: []byte(`{"kind":"Namespace"}`)}
}

func fleet(withdrawn ...string) *v1alpha1.FleetCluster {
	c := &v1alpha1.FleetCluster{}
	c.Name, c.Status.Withdrawn, c.Status.ClusterUID = "west", withdrawn, "west-uid"
	return c
}

// observed is a cluster with nothing in it, and a bundle of one namespace.
func observed(objects ...Object) Observed {
	return Observed{
		Hub: hub, ClusterUID: "west-uid", Fleet: fleet(), Grids: map[Key]Live{}, Copies: map[string]Bundle{},
		Bundles: map[string]Bundle{"shop": {Objects: objects}},
	}
}

func names(set []Object) []string {
	var all []string
	for _, o := range set {
		all = append(all, o.Kind+" "+o.Namespace+"/"+o.Name)
	}
	return all
}

func reasonOf(t *testing.T, d Delivery, name string) string {
	t.Helper()
	for _, r := range d.Reports {
		if r.Name == name && r.Problem != nil {
			if len(r.Problem.Message) > v1alpha1.MaxMessage || r.Problem.Message == "" {
				t.Errorf("the message of %s has %d bytes", name, len(r.Problem.Message))
			}
			return r.Problem.Reason
		}
	}
	return ""
}

// TestObstacles: what cannot be applied is left out and reported, and the rest is applied.
func TestObstacles(t *testing.T) {
	foreign := grid("shop", "foreign", "9")
	foreign.From = "hub-2/9"
	secret := grid("shop", "secret", "8")
	secret.Kind = "v1 Secret"
	set := Object{Key: Key{Kind: "StatefulSetGrid", Namespace: "shop", Name: "bad"}, From: hub + "/2"}
	for name, c := range map[string]struct {
		bad    Object
		change func(*Observed)
		reason string
	}{
		"a Grid of the cluster has the name": {bad: grid("shop", "bad", "2"), reason: ReasonNameCollision, change: func(o *Observed) {
			o.Grids[Key{Kind: "DeploymentGrid", Namespace: "shop", Name: "bad"}] = Live{}
		}},
		"a Grid of another hub has the name": {bad: grid("shop", "bad", "2"), reason: ReasonNameCollision, change: func(o *Observed) {
			o.Grids[Key{Kind: "DeploymentGrid", Namespace: "shop", Name: "bad"}] = Live{From: "hub-2/7"}
		}},
		"another Grid of the hub has the name": {bad: grid("shop", "bad", "2"), reason: ReasonNameCollision, change: func(o *Observed) {
			o.Bundles["books"] = Bundle{Objects: []Object{grid("shop", "bad", "3")}}
		}},
		"the namespace is missing": {bad: grid("nowhere", "bad", "2"), reason: ReasonNamespaceMissing, change: func(o *Observed) {
			o.Missing.Namespaces = map[string]bool{"nowhere": true}
		}},
		"the kind is missing": {bad: set, reason: ReasonKindMissing, change: func(o *Observed) {
			o.Missing.Kinds = map[string]bool{"StatefulSetGrid": true}
		}},
		"a Secret":              {bad: secret},
		"a Grid of another hub": {bad: foreign},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(grid("shop", "good", "1"), c.bad)
			if c.change != nil {
				c.change(&o)
			}
			d := Decide(o)
			if diff := cmp.Diff([]string{"DeploymentGrid shop/good"}, names(d.Apply["shop"])); diff != "" {
				t.Errorf("what is applied (-want +got):\n%s", diff)
			}
			if got := reasonOf(t, d, c.bad.Name); got != c.reason {
				t.Errorf("it is reported as %q, want %q", got, c.reason)
			}
			if foreign := len(d.Problems) > 0 && d.Problems[0].Reason == ReasonForeignObject; foreign != (c.reason == "") {
				t.Errorf("the cluster's problems are %v", d.Problems)
			}
		})
	}
}

// TestNamespaceIsMade: a Namespace in the bundle comes first, and makes its Grids applicable. Of
// what the hub says of it the labels are left by which the API server confines its Pods.
func TestNamespaceIsMade(t *testing.T) {
	o := observed(grid("shop", "pos", "1"), Object{Key: Key{Kind: "Namespace", Name: "shop"}, JSON: []byte(
		`{"kind": "Namespace", "metadata": {"name": "shop", "labels": {"pod-security.kubernetes.io/enforce": "restricted", "else": "x", ` +
			`"istio-injection": "enabled"}, "annotations": {"scheduler.alpha.kubernetes.io/node-selector": "x=y"}, "finalizers": ["x"]}}`)})
	o.Missing.Namespaces = map[string]bool{"shop": true}
	o.Bundles["shop"] = Bundle{Objects: append(o.Bundles["shop"].Objects, namespace("kube-system"))}
	set := Decide(o).Apply["shop"]
	if diff := cmp.Diff([]string{"Namespace /shop", "DeploymentGrid shop/pos"}, names(set)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const want = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"pod-security.kubernetes.io/enforce":"restricted"},` +
		`"annotations":{"kustomize.toolkit.fluxcd.io/prune":"disabled","kustomize.toolkit.fluxcd.io/ssa":"IfNotPresent"}}}`
	if diff := cmp.Diff(want, string(set[0].JSON)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAcceptedNamespaces: a cluster takes Grids into the namespaces that it names, and into no
// others. What is there stays as it is.
func TestAcceptedNamespaces(t *testing.T) {
	pos, till, old := grid("shop", "pos", "1"), grid("bank", "till", "2"), grid("bank", "old", "3")
	o := observed(pos)
	o.Bundles["bank"] = Bundle{Objects: []Object{namespace("bank"), till, old}}
	o.Copies["bank"] = Bundle{Objects: []Object{old}}
	o.Grids[old.Key] = Live{From: old.From}
	o.Accept = []string{"shop"}
	d := Decide(o)
	if diff := cmp.Diff([]string{"DeploymentGrid shop/pos"}, names(d.Apply["shop"])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"DeploymentGrid bank/old"}, names(d.Apply["bank"])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := reasonOf(t, d, "till"); got != ReasonNamespaceRefused {
		t.Errorf("it is reported as %q", got)
	}
}

// TestRemoval: what was applied stays until the hub says that it is withdrawn.
func TestRemoval(t *testing.T) {
	applied := Bundle{Objects: []Object{grid("shop", "pos", "1"), grid("shop", "till", "2")}}
	for name, c := range map[string]struct {
		bundles map[string]Bundle
		fleet   *v1alpha1.FleetCluster
		want    []string
		remove  bool
	}{
		"the bundle has lost one":          {bundles: map[string]Bundle{"shop": {Objects: applied.Objects[:1]}}, fleet: fleet(), want: []string{"pos", "till"}},
		"the bundle is gone":               {bundles: map[string]Bundle{}, fleet: fleet(), want: []string{"pos", "till"}},
		"one is withdrawn":                 {bundles: map[string]Bundle{"shop": {Objects: applied.Objects[:1]}}, fleet: fleet("2"), want: []string{"pos"}},
		"both are withdrawn":               {bundles: map[string]Bundle{}, fleet: fleet("1", "2"), remove: true},
		"withdrawn, and sent again":        {bundles: map[string]Bundle{"shop": applied}, fleet: fleet("1", "2"), want: []string{"pos", "till"}},
		"the bundle cannot be read":        {bundles: map[string]Bundle{"shop": {Unread: "torn"}}, fleet: fleet("1", "2"), want: []string{"pos", "till"}},
		"the hub has no such FleetCluster": {fleet: nil, want: []string{"pos", "till"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Hub: hub, ClusterUID: "west-uid", Fleet: c.fleet, Bundles: c.bundles, Copies: map[string]Bundle{"shop": applied}, Grids: map[Key]Live{}}
			d := Decide(o)
			var got []string
			for _, g := range d.Apply["shop"] {
				got = append(got, g.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("what is applied (-want +got):\n%s", diff)
			}
			if removed := slices.Contains(d.Remove, "shop"); removed != c.remove {
				t.Errorf("the set is removed: %t, want %t", removed, c.remove)
			}
		})
	}
}

// TestUnknownCopy: a set whose copy cannot be read, or which another hub has sent, is neither
// applied nor removed, and the cluster says why. One whose removal has begun goes on to the
// end.
func TestUnknownCopy(t *testing.T) {
	foreign := grid("shop", "old", "9")
	foreign.From = "hub-2/9"
	leaving := Bundle{Objects: []Object{grid("shop", "pos", "1")}, Removing: true}
	for name, c := range map[string]struct {
		copied Bundle
		change func(*Observed)
		reason string
		apply  []string
		remove bool
	}{
		"torn":                      {copied: Bundle{Unread: "torn"}, reason: ReasonCopyUnread},
		"torn, without the hub":     {copied: Bundle{Unread: "torn"}, change: func(o *Observed) { o.Fleet, o.Bundles = nil, nil }, reason: ReasonCopyUnread},
		"torn, suspended":           {copied: Bundle{Unread: "torn"}, change: func(o *Observed) { o.Fleet.Spec.Suspend = true }, reason: ReasonCopyUnread},
		"torn, and nothing is sent": {copied: Bundle{Unread: "torn"}, change: func(o *Observed) { o.Bundles = map[string]Bundle{} }, reason: ReasonCopyUnread},
		"of another hub":            {copied: Bundle{Objects: []Object{foreign}}, reason: ReasonOtherHub, apply: []string{"DeploymentGrid shop/old"}},
		"on its way out":            {copied: leaving, change: func(o *Observed) { o.Fleet, o.Bundles = nil, nil }, remove: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(grid("shop", "pos", "1"))
			o.Copies["shop"] = c.copied
			if c.change != nil {
				c.change(&o)
			}
			d := Decide(o)
			if diff := cmp.Diff(c.apply, names(d.Apply["shop"])); diff != "" || slices.Contains(d.Remove, "shop") != c.remove {
				t.Errorf("removed: %v, applied (-want +got):\n%s", d.Remove, diff)
			}
			if c.reason != "" && (len(d.Problems) != 1 || d.Problems[0].Reason != c.reason) {
				t.Errorf("the problems are %v", d.Problems)
			}
		})
	}
}

// TestSpoofed: whoever may make Grids in the cluster can write the annotation of this hub into
// them. These take the place of no Grid that was sent, or that the hub asks about, and few are
// reported.
func TestSpoofed(t *testing.T) {
	o := observed(grid("shop", "pos", "1"))
	for i := range v1alpha1.MaxGrids + 1 {
		o.Grids[Key{Kind: "DeploymentGrid", Namespace: "attic", Name: fmt.Sprint("a", i)}] = Live{From: fmt.Sprintf("%s/0%d", hub, i)}
	}
	var delivered []Object
	for i := range straysMax + 5 { // they do not count
		sent := grid("zoo", fmt.Sprint("d", i), "1")
		sent.From = fmt.Sprint(hub, "/d", i)
		delivered = append(delivered, sent)
		o.Grids[sent.Key] = Live{From: sent.From}
	}
	o.Bundles["zoo"] = Bundle{Objects: delivered}
	o.Grids[Key{Kind: "DeploymentGrid", Namespace: "zoo", Name: "z"}] = Live{From: hub + "/zoo"}
	o.Fleet.Status.Withdrawn = []string{"0999"}
	got := map[string]bool{}
	for _, r := range Decide(o).Reports {
		got[r.Namespace+"/"+r.Name] = true
	}
	if !got["shop/pos"] || !got["attic/a999"] || !got["zoo/z"] || len(got) != 2*straysMax+7 {
		t.Errorf("%d are reported: %v", len(got), got)
	}
}

// TestFrozen: a cluster that is suspended, is another one or is dropped keeps what it has.
func TestFrozen(t *testing.T) {
	old := Bundle{Objects: []Object{grid("shop", "pos", "1")}}
	for name, change := range map[string]func(*Observed){
		"suspended":       func(o *Observed) { o.Fleet.Spec.Suspend = true },
		"another cluster": func(o *Observed) { o.ClusterUID = "east-uid" },
		"let go of":       func(o *Observed) { o.Fleet.DeletionTimestamp = &metav1.Time{} },
		"unknown bundles": func(o *Observed) { o.Bundles = nil },
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(grid("shop", "other", "2"))
			o.Fleet = fleet("1")
			o.Copies["shop"] = old
			change(&o)
			if diff := cmp.Diff([]string{"DeploymentGrid shop/pos"}, names(Decide(o).Apply["shop"])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSuspension: Flux is suspended in the wrong cluster, which reports nothing, and stays so until
// it is known which one this is.
func TestSuspension(t *testing.T) {
	for name, c := range map[string]struct {
		change                   func(*Observed)
		was, suspended, silenced bool
	}{
		"the cluster itself":                   {was: true, change: func(*Observed) {}},
		"suspended":                            {suspended: true, change: func(o *Observed) { o.Fleet.Spec.Suspend = true }},
		"another cluster":                      {suspended: true, silenced: true, change: func(o *Observed) { o.ClusterUID = "east-uid" }},
		"the hub is away":                      {change: func(o *Observed) { o.Fleet = nil }},
		"the hub is away, and it was so":       {was: true, suspended: true, change: func(o *Observed) { o.Fleet = nil }},
		"the cluster is away, and it was so":   {was: true, suspended: true, change: func(o *Observed) { o.ClusterUID = "" }},
		"the cluster is away, and it was not":  {change: func(o *Observed) { o.ClusterUID = "" }},
		"the first that the hub hears of, new": {was: true, change: func(o *Observed) { o.Fleet.Status.ClusterUID = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(grid("shop", "pos", "1"))
			o.Applied = map[string]Applied{"books": {}, "shop": {Suspended: c.was}}
			c.change(&o)
			if d := Decide(o); d.Suspend != c.suspended || (d.Reports == nil) != c.silenced {
				t.Errorf("suspended: %t, reports: %v", d.Suspend, d.Reports)
			}
		})
	}
}

// hold is what the hub says of a cluster with Grids that it does not know.
func hold(o *Observed) {
	o.Fleet.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDistributionHeld, Status: metav1.ConditionTrue}}
}

// TestAdoption: a Grid of this hub that holds the cluster, and that no copy has, is taken into one,
// if nothing else can be meant, so that it can be withdrawn later.
func TestAdoption(t *testing.T) {
	lost := grid("shop", "lost", "2")
	for name, c := range map[string]struct {
		change  func(*Observed)
		adopted bool
	}{
		"there is no copy":          {adopted: true, change: func(*Observed) {}},
		"there is no bundle either": {adopted: true, change: func(o *Observed) { o.Bundles = map[string]Bundle{} }},
		"it does not hold":          {change: func(o *Observed) { o.Fleet = fleet() }},
		"the hub has withdrawn it":  {change: func(o *Observed) { o.Fleet.Status.Withdrawn = []string{"2"} }},
		"the hub is away":           {change: func(o *Observed) { o.Fleet = nil }},
		"it is being deleted":       {change: func(o *Observed) { o.Grids[lost.Key] = Live{From: lost.From} }},
		"another one gets the name": {change: func(o *Observed) { o.Copies["shop"] = Bundle{Objects: []Object{grid("shop", "lost", "3")}} }},
		"it is in a copy elsewhere": {change: func(o *Observed) { o.Copies["shop"] = Bundle{Objects: []Object{grid("shop", "moved", "2")}} }},
		"a copy cannot be read":     {change: func(o *Observed) { o.Copies["books"] = Bundle{Unread: "torn"} }},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(grid("shop", "pos", "1"))
			hold(&o)
			o.Grids[lost.Key] = Live{From: lost.From, Revision: "r1", JSON: func() []byte { return lost.JSON }}
			c.change(&o)
			d := Decide(o)
			at := slices.IndexFunc(d.Apply["shop"], func(x Object) bool { return x.From == lost.From && x.Name == lost.Name })
			if found := at >= 0; found != c.adopted || found && string(d.Apply["shop"][at].JSON) != string(lost.JSON) {
				t.Errorf("adopted: %t: %v", found, names(d.Apply["shop"]))
			}
		})
	}
}

// TestLargeReportFits: a report has at most the bytes of a GridReport, and states have a part of
// them. What is left out is counted.
func TestLargeReportFits(t *testing.T) {
	o := observed(grid("shop", "pos", "1"))
	live := Live{From: hub + "/1", Revision: "r1", Observed: true, States: map[string]v1.State{}}
	for i := range 2000 {
		value := fmt.Sprint("unit-", i)
		live.Status.Units = append(live.Status.Units, v1.UnitStatus{Value: value, Phase: v1.UnitFailed, Message: strings.Repeat("m", 200)})
		live.States[value] = v1.State{JSON: []byte(`{"replicas": 2, "readyReplicas": 2}`)}
	}
	o.Grids[Key{Kind: "DeploymentGrid", Namespace: "shop", Name: "pos"}] = live
	for _, r := range Decide(o).Reports {
		states := 0
		for value, s := range r.States {
			states += len(value) + len(s.JSON)
		}
		if r.Size() > v1alpha1.MaxReport || states > v1alpha1.MaxReportStates || len(r.Status.Units) == 0 || len(r.Status.Units)+int(r.Status.OmittedUnits) != 2000 {
			t.Errorf("%d bytes, %d of states, %d rows and %d omitted", r.Size(), states, len(r.Status.Units), r.Status.OmittedUnits)
		}
	}
}

// TestNothingLeavesUnsaid: whatever is observed, an applied Grid stays unless its UID is withdrawn
// or the name belongs to another owner, and also then while it lives and Flux does not know it; and
// only Grids of this hub are ever applied.
func TestNothingLeavesUnsaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		oneOf := func(t *rapid.T, what string, all ...string) string { return rapid.SampledFrom(all).Draw(t, what) }
		object := rapid.Custom(func(t *rapid.T) Object {
			o := grid(oneOf(t, "namespace", "shop", "books"), oneOf(t, "name", "a", "b", "c"), oneOf(t, "uid", "1", "2", "3", "4", "5"))
			if rapid.IntRange(0, 9).Draw(t, "foreign") == 0 {
				o.From = "hub-2/1"
			}
			if rapid.IntRange(0, 9).Draw(t, "secret") == 0 {
				o.Kind = "v1 Secret"
			}
			return o
		})
		bundles := rapid.MapOf(rapid.SampledFrom([]string{"shop", "books", "cafe"}), rapid.Custom(func(t *rapid.T) Bundle {
			return Bundle{Objects: rapid.SliceOfN(object, 0, 3).Draw(t, "objects"), Unread: oneOf(t, "unread", "", "", "torn")}
		}))
		withdrawn := rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "3"}), 0, 2).Draw(t, "withdrawn")
		o := Observed{Hub: hub, ClusterUID: "west-uid", Fleet: fleet(withdrawn...), Grids: map[Key]Live{}}
		if rapid.Bool().Draw(t, "held") {
			hold(&o)
		}
		o.Bundles = bundles.Draw(t, "bundles")
		o.Copies = appliedBefore(bundles.Draw(t, "copies"))
		o.Missing.Namespaces = map[string]bool{"books": rapid.Bool().Draw(t, "missing")}
		for _, live := range rapid.SliceOfN(object, 0, 4).Draw(t, "live") {
			o.Grids[live.Key] = Live{From: live.From, Revision: live.Revision}
			if live.Kind == "DeploymentGrid" {
				o.Grids[live.Key] = Live{From: live.From, Revision: live.Revision, JSON: func() []byte { return live.JSON }}
			}
		}
		o.Applied = map[string]Applied{"shop": {Known: map[Key]bool{}, Busy: rapid.Bool().Draw(t, "busy"), Failure: oneOf(t, "failure", "", "refused")}}
		for _, x := range rapid.SliceOfN(object, 0, 3).Draw(t, "known") {
			o.Applied["shop"].Known[x.Key] = true
		}
		d := Decide(o)
		stays, keys := map[string]bool{}, map[Key]string{}
		for set, objects := range d.Apply {
			for _, x := range objects {
				stays[x.From] = true
				if !strings.HasPrefix(x.From, hub+"/") || x.Kind != "DeploymentGrid" {
					t.Fatalf("%s applies %v", set, x)
				}
				if other, twice := keys[x.Key]; twice {
					t.Fatalf("%v is in %s and in %s", x.Key, other, set)
				}
				keys[x.Key] = set
			}
		}
		for set, c := range o.Copies {
			for _, x := range c.Objects {
				uid := strings.TrimPrefix(x.From, hub+"/")
				_, taken := keys[x.Key]
				lost := o.Grids[x.Key].From != x.From // another owner has the name
				lives := o.Grids[x.Key].From == x.From
				if o.Bundles[set].Unread == "" && lives && !taken && !o.Applied[set].Known[x.Key] {
					t.Fatalf("%v of %s leaves, and Flux does not know it", x, set)
				}
				if !stays[x.From] && !slices.Contains(o.Fleet.Status.Withdrawn, uid) && !taken && !lost {
					t.Fatalf("%v of %s has left, and nobody said so", x, set)
				}
			}
		}
		again := Decide(o)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(d.Reports)), slices.Sorted(maps.Keys(again.Reports))); diff != "" {
			t.Fatalf("two decisions differ:\n%s", diff)
		}
	})
}

// appliedBefore makes copies what an earlier decision can have left: Grids of this hub, each name
// and each UID once.
func appliedBefore(copies map[string]Bundle) map[string]Bundle {
	keys, seen := map[Key]bool{}, map[string]bool{}
	for _, set := range slices.Sorted(maps.Keys(copies)) {
		var kept []Object
		for _, x := range copies[set].Objects {
			if strings.HasPrefix(x.From, hub+"/") && x.Kind == "DeploymentGrid" && !keys[x.Key] && !seen[x.From] {
				keys[x.Key], seen[x.From] = true, true
				kept = append(kept, x)
			}
		}
		copies[set] = Bundle{Objects: kept}
	}
	return copies
}
