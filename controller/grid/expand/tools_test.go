package expand

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"

	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// TestTools: what kstatus (Flux, kpt, kubectl's ApplySets) and Argo CD make of each state of a
// Grid. Both are the real libraries, with the script that is shipped.
func TestTools(t *testing.T) {
	for _, test := range []struct {
		name    string
		with    func(*cluster)
		kstatus status.Status
		argo    string
		says    string // in Argo CD's message
	}{
		{"all ready", nil, status.CurrentStatus, "Healthy", "all 3 units with Nodes are ready"},
		{"one changes", func(c *cluster) { c.objects["web-a"].Available = 0 }, status.InProgressStatus, "Progressing", "1 of 3 units progressing: a"},
		{"one is stuck", func(c *cluster) { c.objects["web-a"].Stalled = "deadline" }, status.FailedStatus, "Degraded", "1 of 3 units failed: a; a: Deployment web-a is stuck"},
		{"one is stuck, one changes", func(c *cluster) {
			c.objects["web-a"].Stalled, c.objects["web-b"].Available = "deadline", 0
		}, status.FailedStatus, "Degraded", "1 of 3 units failed: a"},
		{"one is refused", func(c *cluster) {
			c.grid.Template = withReplicas(7)
			c.refuse = func(Apply) *Problem { return &Problem{ReasonRefused, "quota"} }
		}, status.FailedStatus, "Degraded", "quota"},
		{"a foreign object", func(c *cluster) { c.objects["web-a"].Owner = "somebody" }, status.FailedStatus, "Degraded", "Deployment web-a exists"},
		{"one is lost", func(c *cluster) { c.vanish("a") }, status.CurrentStatus, "Healthy", "all 2 units with Nodes are ready; 1 of 3 units lost: a"},
		{"most are lost", func(c *cluster) { c.vanish("a", "b") }, status.CurrentStatus, "Degraded", "2 of 3 units that were there are lost"},
		{"all are lost", func(c *cluster) { c.vanish("a", "b", "c") }, status.FailedStatus, "Degraded", "3 of 3 units lost"},
		{"one is offline", func(c *cluster) { c.ready = map[string]int{"b": 1, "c": 1} }, status.CurrentStatus, "Healthy", "1 unit offline: a"},
		{"one is offline, one changes", func(c *cluster) {
			c.ready = map[string]int{"b": 1, "c": 1}
			c.objects["web-b"].Available = 0
		}, status.InProgressStatus, "Progressing", "1 of 3 units progressing: b"},
		{"all are offline", func(c *cluster) { c.ready = map[string]int{} }, status.InProgressStatus, "Suspended", "3 units offline: a, b, c"},
		{"no units", func(c *cluster) {
			c.vanish("a", "b", "c")
			c.objects = map[string]*Live{}
		}, status.InProgressStatus, "Suspended", "no Node has the label zone"},
		{"no key", func(c *cluster) { c.grid.Key = "" }, status.FailedStatus, "Degraded", v1.MessageKeyMissing},
		{"a template is missing", func(c *cluster) { c.grid.Templates = map[string]string{"b": "gone"} }, status.FailedStatus, "Degraded", "b: spec.templatePool"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := running(t, "a b c")
			if test.with != nil {
				test.with(c)
			}
			c.reconcile()
			c.reconcile()
			c.judged(t, v1.DeploymentGridStatus{WorkloadGridStatus: c.status}, test.kstatus, test.argo, test.says)
			check(t, "Reconciling exists", c.condition(v1.ConditionReconciling) != "", test.argo == "Progressing")
			check(t, "Stalled exists", c.condition(v1.ConditionStalled) != "", test.kstatus == status.FailedStatus)
		})
	}
}

// TestToolsOfDistributedGrid: what they make of clusters. One that is silent has not failed, so
// they wait.
func TestToolsOfDistributedGrid(t *testing.T) {
	for _, test := range []struct {
		what    string
		with    func(*Member)
		kstatus status.Status
		argo    string
		says    string
	}{
		{"current", nil, status.CurrentStatus, "Healthy", "1 of 1 clusters are ready"},
		{"behind", func(m *Member) { m.State = StateBehind }, status.InProgressStatus, "Progressing", "1 of 1 clusters behind: west"},
		{"silent", func(m *Member) { m.SilentSince = start() }, status.InProgressStatus, "Progressing", "1 of 1 clusters stale: west"},
		{"not applied", func(m *Member) { m.State = "NameCollision" }, status.FailedStatus, "Degraded", "west: NameCollision"},
		{"a unit failed", func(m *Member) { *m = reporting("west", map[string]v1.UnitPhase{"a": v1.UnitFailed}) }, status.FailedStatus, "Degraded", "1 of 2 units failed: west/a"},
	} {
		c := running(t, "a")
		m := reporting("west", ready("a"))
		if test.with != nil {
			test.with(&m)
		}
		o := c.observe(nil)
		o.Fleet = []Member{m}
		t.Run(test.what, func(t *testing.T) {
			c.judged(t, v1.DeploymentGridStatus{WorkloadGridStatus: Status(o)}, test.kstatus, test.argo, test.says)
		})
	}
}

// TestToolsOfServiceGrid is the same for the kind without units.
func TestToolsOfServiceGrid(t *testing.T) {
	for _, test := range []struct {
		name    string
		with    func(*cluster)
		kstatus status.Status
		argo    string
		says    string
	}{
		{"ready", nil, status.CurrentStatus, "Healthy", "the Service is what the Grid asks for"},
		{"not applied yet", func(c *cluster) { c.grid.Template = []byte(`{"ports": [{"port": 81}]}`) }, status.InProgressStatus, "Progressing", "does not have the last change yet"},
		{"a foreign object", func(c *cluster) { c.objects["web-svc"].Owner = "somebody" }, status.FailedStatus, "Degraded", "Service web-svc exists"},
		{"no key", func(c *cluster) { c.grid.Key = "" }, status.FailedStatus, "Degraded", v1.MessageKeyMissing},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newServices(t)
			c.reconcile()
			if test.with != nil {
				test.with(c)
			}
			c.judged(t, ServiceStatus(c.observe([]string{"web-svc"})), test.kstatus, test.argo, test.says)
		})
	}
}

// TestToolsWaitForTheController: a Grid that the controller has not seen, or not since its last
// change, is in progress.
func TestToolsWaitForTheController(t *testing.T) {
	c := running(t, "a")
	c.grid.Generation = 2
	c.judged(t, v1.DeploymentGridStatus{WorkloadGridStatus: c.status}, status.InProgressStatus, "Progressing", "has not seen the last change")
	argo, says := argoHealth(t, map[string]any{"metadata": map[string]any{"generation": int64(1)}})
	check(t, "Argo CD, without a status", argo+" "+says, "Progressing the controller has not seen the last change yet")
}

// TestToolsOfAnIdleGrid: nothing is waited for where another cluster expands the Grid.
func TestToolsOfAnIdleGrid(t *testing.T) {
	c := newCluster(t, "a")
	c.grid.Distributed = true
	idle := v1.GridStatus{Conditions: []metav1.Condition{*IdleCondition(c.grid, nil, start())}}
	c.judged(t, idle, status.CurrentStatus, "Healthy", "another cluster expands this Grid")
}

// judged has both tools look at the Grid with a status.
func (c *cluster) judged(t *testing.T, s any, wanted status.Status, argo, says string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": v1.GroupVersion().String(), "kind": c.grid.Kind, "status": s,
		"metadata": map[string]any{"name": c.grid.Name, "namespace": c.grid.Namespace, "generation": c.grid.Generation},
	})
	if err != nil {
		t.Fatal(err)
	}
	var o unstructured.Unstructured
	if err := o.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	result, err := status.Compute(&o)
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != wanted {
		t.Errorf("kstatus says %s, want %s: %s\n%+v", result.Status, wanted, result.Message, o.Object["status"])
	}
	health, message := argoHealth(t, o.Object)
	if health != argo || !strings.Contains(message, says) {
		t.Errorf("Argo CD says %s: %s; want %s: %s", health, message, argo, says)
	}
}

// argoHealth runs the script as Argo CD does: with the object in obj, and without the libraries of
// the system.
func argoHealth(t *testing.T, o map[string]any) (health, message string) {
	t.Helper()
	script, err := os.ReadFile("../../../deploy/argo-cd/health.lua")
	if err != nil {
		t.Fatal(err)
	}
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	l.Push(l.NewFunction(lua.OpenBase))
	l.Call(0, 0)
	l.SetGlobal("obj", asLua(l, o))
	if err := l.DoString(string(script)); err != nil {
		t.Fatal(err)
	}
	result, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %v", l.Get(-1))
	}
	return result.RawGetString("status").String(), result.RawGetString("message").String()
}

func asLua(l *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := l.NewTable()
		for name, field := range value {
			table.RawSetString(name, asLua(l, field))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, entry := range value {
			table.Append(asLua(l, entry))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	default:
		return lua.LNil
	}
}
