package gridspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMistakes: a Grid has the mistakes of its key and of the templates that units get, and no
// others.
func TestMistakes(t *testing.T) {
	const sound = `{"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {}}}`
	web := Spec{Kind: DeploymentGrid, Key: "location", Template: []byte(sound)}
	change := func(do func(*Spec)) Spec {
		g := web
		do(&g)
		return g
	}
	nodes := &NodeLabels{Keys: []string{"location", "zone"}, Values: []string{"beijing", "guangzhou"}}
	for name, test := range map[string]struct {
		spec  Spec
		nodes *NodeLabels
		want  []string // reasons
	}{
		"none":          {web, nodes, nil},
		"no key":        {change(func(g *Spec) { g.Key = "" }), &NodeLabels{Keys: nodes.Keys}, []string{ReasonEmpty}},
		"invalid key":   {change(func(g *Spec) { g.Key = "a b" }), &NodeLabels{Keys: nodes.Keys}, []string{ReasonInvalidKey}},
		"no units":      {change(func(g *Spec) { g.Key = "locaton" }), &NodeLabels{Keys: nodes.Keys}, []string{ReasonNoUnits}},
		"no Nodes":      {change(func(g *Spec) { g.Key = "locaton" }), nil, nil},
		"no template":   {change(func(g *Spec) { g.Template = nil }), nodes, []string{ReasonMissingTemplate}},
		"no default":    {change(func(g *Spec) { g.Default = "big" }), nodes, []string{ReasonMissingTemplate}},
		"unused":        {change(func(g *Spec) { g.Pool = map[string][]byte{"old": []byte("1")} }), nodes, nil},
		"of a unit":     {change(func(g *Spec) { g.Templates = map[string]string{"beijing": "big"} }), nodes, []string{ReasonMissingTemplate}},
		"not an object": {change(func(g *Spec) { g.Template = []byte("1") }), nodes, []string{ReasonInvalidTemplate}},
		"of a Service":  {Spec{Kind: ServiceGrid, Key: "location"}, nodes, []string{ReasonMissingTemplate}},
		"each unit has its own": {change(func(g *Spec) {
			g.Template, g.Pool, g.Templates = nil, map[string][]byte{"big": []byte(sound)}, map[string]string{"beijing": "big", "guangzhou": "big"}
		}), nodes, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, m := range test.spec.Mistakes(test.nodes) {
				got = append(got, m.Reason)
				if m.Wrong == "" || m.Remedy == "" {
					t.Errorf("%+v", m)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}
