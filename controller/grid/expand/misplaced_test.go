package expand

import (
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"

	"k8s.io/apimachinery/pkg/types"
)

func misplaced(name, child string, since time.Duration) Pod {
	return Pod{Namespace: "default", Name: name, UID: types.UID(name), Node: "node-of-another-unit", Child: child, Since: start().Add(since)}
}

// TestMisplacedPods are counted at once and evicted after the grace.
func TestMisplacedPods(t *testing.T) {
	c := running(t, "a b")
	c.misplaced = []Pod{misplaced("web-a-1", "web-a", 0), misplaced("web-a-2", "web-a", time.Minute)}
	c.expect()
	check(t, "misplaced", c.row("a").Misplaced, 2)
	check(t, "misplaced", c.row("b").Misplaced, 0)
	check(t, "looks again after", c.recheck, 5*time.Minute)
	contains(t, c.row("a").Message, "2 Pods run on Nodes without the label zone=a", "evicted when the grace is over")
	c.after(5 * time.Minute)
	c.expect("evict web-a-1")
	check(t, "misplaced", c.row("a").Misplaced, 1)
	check(t, "looks again after", c.recheck, time.Minute)
	c.after(6 * time.Minute)
	c.expect("evict web-a-2")
}

// TestMisplacedPodsThatStay: which Pods are never evicted.
func TestMisplacedPodsThatStay(t *testing.T) {
	for name, change := range map[string]func(c *cluster){
		"Keep":           func(c *cluster) { c.grid.Annotations[v1.AnnotationMisplacedPods] = "Keep" },
		"a mistyped one": func(c *cluster) { c.grid.Annotations[v1.AnnotationMisplacedPods] = "evict" },
		"volumes, whatever the grace": func(c *cluster) {
			c.objects["web-a"].Volumes = true
			c.grid.Annotations[v1.AnnotationRemovalGrace] = "1m"
		},
		"never":                    func(c *cluster) { set(&c.objects["web-a"].Annotations, v1.AnnotationRemovalGrace, "never") },
		"the flag is never":        func(c *cluster) { c.grace = -1 },
		"no grace that is one":     func(c *cluster) { c.grid.Annotations[v1.AnnotationRemovalGrace] = "soon" },
		"the template is unusable": func(c *cluster) { c.grid.Templates = map[string]string{"a": "gone"} },
		"the child is not on the key yet": func(c *cluster) {
			c.objects["web-a"].NodeSelector = MakePairs(map[string]string{"site": "a"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := running(t, "a")
			c.misplaced = []Pod{misplaced("web-a-1", "web-a", 0)}
			change(c)
			c.after(time.Hour)
			c.expect()
			check(t, "misplaced", c.row("a").Misplaced, 1)
		})
	}
}

// TestMisplacedPodsOfUnitThatIsBack: those of a lost unit stay, as a mistyped gridUniqKey must not
// move every Pod. The grace begins when the unit has a Node again, since the
// Nodes of a unit that comes back get their labels one after the other.
func TestMisplacedPodsOfUnitThatIsBack(t *testing.T) {
	c := running(t, "a b")
	c.vanish("a", "b")
	c.misplaced = []Pod{misplaced("web-a-1", "web-a", 0), misplaced("web-b-1", "web-b", 0)}
	c.expect(each("lost", "a b")...)
	c.after(time.Hour)
	c.expect()
	check(t, "misplaced while lost", c.row("a").Misplaced, 1)
	c.units = map[string][]string{"a": {"node-a"}, "b": {"node-b"}}
	c.expect(each("found", "a b")...)
	check(t, "misplaced", c.row("a").Misplaced, 1)
	check(t, "looks again after", c.recheck, 5*time.Minute)
	c.after(time.Hour + 5*time.Minute)
	c.expect("evict web-a-1", "evict web-b-1")
}
