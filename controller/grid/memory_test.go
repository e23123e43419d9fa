package grid

import (
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func at(version string) expand.Live {
	return expand.Live{Name: "web-a", UID: "1", ResourceVersion: version}
}

// TestCacheBehindOurWrites: what a write returned counts until the cache shows it, or anything
// newer.
func TestCacheBehindOurWrites(t *testing.T) {
	type write struct{ before, after string }
	for _, c := range []struct {
		what   string
		writes []write
		cached string
		want   string
	}{
		{"no write", nil, "5", "5"},
		{"the cache is behind", []write{{"5", "6"}}, "5", "6"},
		{"it has seen the write", []write{{"5", "6"}}, "6", "6"},
		{"it has seen somebody's later write", []write{{"5", "6"}}, "7", "7"},
		{"it is behind two writes", []write{{"5", "6"}, {"6", "7"}}, "5", "7"},
		{"it is between them", []write{{"5", "6"}, {"6", "7"}}, "6", "7"},
		{"a write that changed nothing", []write{{"5", "5"}}, "5", "5"},
		{"it was made, and the cache has it", []write{{"", "6"}}, "6", "6"},
		{"it was made, and changed by somebody", []write{{"", "6"}}, "7", "7"},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := newMemory().of(types.NamespacedName{Name: "web"}, "grid")
			for _, w := range c.writes {
				r.wrote(w.before, at(w.after))
			}
			if got := r.newest(at(c.cached)).ResourceVersion; got != c.want {
				t.Errorf("version %s, want %s", got, c.want)
			}
		})
	}
	r := newMemory().of(types.NamespacedName{Name: "web"}, "grid")
	r.wrote("5", at("6"))
	another := at("5")
	another.UID = "2"
	if r.newest(another).UID != "2" {
		t.Error("an answer stands for another object of the name")
	}
}

// TestCacheBehindOurStatuses: a status of ours counts until the cache shows it, or anything newer.
// Otherwise its changes would be reported again, and conditions would have another time.
func TestCacheBehindOurStatuses(t *testing.T) {
	grid := func(version string) client.Object {
		return &v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{UID: "grid", ResourceVersion: version}}
	}
	r := newMemory().of(types.NamespacedName{Name: "web"}, "grid")
	r.wroteStatus(grid("10"), "a", time.Time{})
	r.wroteStatus(grid("12"), "b", time.Time{})
	for _, version := range []string{"9", "10", "11"} {
		if got := r.lastStatus(grid(version)); got != "b" {
			t.Errorf("with version %s in the cache: %v", version, got)
		}
	}
	if seen, later := r.lastStatus(grid("12")), r.lastStatus(grid("10")); seen != nil || later != nil {
		t.Errorf("after the cache has seen it: %v, %v", seen, later)
	}
}

func TestMemoryIsOfOneGrid(t *testing.T) {
	m, name := newMemory(), types.NamespacedName{Namespace: "a", Name: "web"}
	m.of(name, "1").applied["web-a"] = expand.Applied{Desired: "x"}
	if len(m.of(name, "1").applied) != 1 {
		t.Error("the same Grid is not remembered")
	}
	if len(m.of(name, "2").applied) != 0 {
		t.Error("what was applied for a Grid counts for a later one of its name")
	}
}

// TestForbiddenIsTriedAgain: on any change of the Grid; what validation refuses is not. A child
// that is not wanted any more is forgotten.
func TestForbiddenIsTriedAgain(t *testing.T) {
	r := newMemory().of(types.NamespacedName{Name: "web"}, "grid")
	r.see("1")
	refused, blocked := expand.Applied{Desired: "x", Refused: &expand.Problem{}}, map[string]bool{"quota": true, "invalid": true}
	r.applied["quota"], r.applied["invalid"], r.applied["lost"] = refused, refused, refused
	r.retries.refuse("quota", "exceeded quota", true, false, time.Time{})
	r.retries.refuse("invalid", "spec.selector: required", false, false, time.Time{})
	if r.see("1"); r.retry(blocked, time.Time{}) || len(r.applied) != 2 {
		t.Errorf("forgotten without a change: %v", r.applied)
	}
	if r.see("2"); !r.retry(blocked, time.Time{}) || len(r.applied) != 1 || r.applied["invalid"].Desired != "x" {
		t.Errorf("remembered after a change: %v", r.applied)
	}
}

func TestPrunedUntilItIsWritten(t *testing.T) {
	r := newMemory().of(types.NamespacedName{Name: "web"}, "grid")
	r.pruned = prunedTemplates{generation: 3, names: []string{"old"}}
	for _, c := range []struct {
		generation int64
		named      []string
		want       []string
	}{
		{3, nil, []string{"old"}},             // the cache is behind
		{3, []string{"old"}, []string{"old"}}, // still
		{4, nil, []string{"old"}},             // the status was not written
		{4, []string{"old"}, nil},
		{3, nil, nil}, // forgotten
	} {
		if diff := cmp.Diff(c.want, r.prunedFor(c.generation, c.named)); diff != "" {
			t.Errorf("%+v (-want +got)\n%s", c, diff)
		}
	}
}

// TestMisplacedKeepTheirClock: also if they are found again, and only those that were looked at can
// go.
func TestMisplacedKeepTheirClock(t *testing.T) {
	m, name := newMemory(), types.NamespacedName{Namespace: "a", Name: "web"}
	r := m.of(name, "1")
	first, later := time.Unix(100, 0), time.Unix(200, 0)
	pod := func(uid, node string, since time.Time) expand.Pod {
		return expand.Pod{UID: types.UID(uid), Name: uid, Node: node, Since: since}
	}
	on := func(node string) func(expand.Pod) bool { return func(p expand.Pod) bool { return p.Node == node } }
	for _, c := range []struct {
		what  string
		node  string
		found []expand.Pod
		news  bool
		want  []expand.Pod
	}{
		{"two are found", "n1", []expand.Pod{pod("a", "n1", first), pod("b", "n1", first)}, true, []expand.Pod{pod("a", "n1", first), pod("b", "n1", first)}},
		{"again", "n1", []expand.Pod{pod("a", "n1", later), pod("b", "n1", later)}, false, []expand.Pod{pod("a", "n1", first), pod("b", "n1", first)}},
		{"one on another Node", "n2", []expand.Pod{pod("c", "n2", later)}, true, []expand.Pod{pod("a", "n1", first), pod("b", "n1", first), pod("c", "n2", later)}},
		{"one has gone", "n1", []expand.Pod{pod("a", "n1", later)}, true, []expand.Pod{pod("a", "n1", first), pod("c", "n2", later)}},
		{"none is left there", "n1", nil, true, []expand.Pod{pod("c", "n2", later)}},
		{"nor was", "n1", nil, false, []expand.Pod{pod("c", "n2", later)}},
	} {
		if news := m.setMisplaced(name, on(c.node), c.found); news != c.news {
			t.Errorf("%s: news: %t", c.what, news)
		}
		if diff := cmp.Diff(c.want, m.misplacedPods(r)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.what, diff)
		}
	}
	if m.setMisplaced(types.NamespacedName{Name: "unknown"}, on("n1"), []expand.Pod{pod("x", "n1", first)}) {
		t.Error("news for a Grid that nobody reconciles")
	}
}

// TestDeletedChildInTheCache: a child that we have deleted is being deleted until the cache has
// seen it go; another one of its name is not.
func TestDeletedChildInTheCache(t *testing.T) {
	r := newMemory().of(types.NamespacedName{Name: "web"}, "1")
	r.deleted["web-a"] = "1"
	for i, test := range []struct {
		shown    []expand.Live
		deleting bool
		left     int
	}{{[]expand.Live{{Name: "web-a", UID: "1"}}, true, 1}, {[]expand.Live{{Name: "web-a", UID: "2"}}, false, 0}, {nil, false, 0}} {
		r.markDeleted(test.shown)
		if deleting := len(test.shown) > 0 && test.shown[0].Deleting; deleting != test.deleting || len(r.deleted) != test.left {
			t.Errorf("%d: deleting %t, remembered %v", i, deleting, r.deleted)
		}
	}
}
