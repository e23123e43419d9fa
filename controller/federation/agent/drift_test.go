package agent

import (
	"encoding/json"
	"fmt"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/federation/agent/delivery"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const sent = `{"apiVersion":"superedge.io/v1","kind":"DeploymentGrid","metadata":{"name":"pos","namespace":"shop","labels":{"app":"pos"},
"annotations":{"superedge.io/from-revision":"r1"}},"spec":{"gridUniqKey":"location","template":{"replicas":2,"x":1.5}}}`

// TestDrift: what a user has edited or deleted is found, what the cluster adds is not, and a
// changed version is looked at again.
func TestDrift(t *testing.T) {
	key := delivery.Key{Kind: "DeploymentGrid", Namespace: "shop", Name: "pos"}
	set := []delivery.Object{{Key: delivery.Key{Kind: "Namespace", Name: "shop"}}, {Key: key, Revision: "r1", JSON: []byte(sent)}}
	for name, c := range map[string]struct {
		edit  func(g *v1.DeploymentGrid)
		drift bool
	}{
		"nothing":                    {edit: func(*v1.DeploymentGrid) {}},
		"a label of another program": {edit: func(g *v1.DeploymentGrid) { g.Labels["other"] = "x" }},
		"its status":                 {edit: func(g *v1.DeploymentGrid) { g.Status.ReadyRate = "1/1" }},
		"a label":                    {edit: func(g *v1.DeploymentGrid) { g.Labels["app"] = "x" }, drift: true},
		"an annotation":              {edit: func(g *v1.DeploymentGrid) { delete(g.Annotations, "superedge.io/from-revision") }, drift: true},
		"the template": {edit: func(g *v1.DeploymentGrid) {
			g.Spec.Template.JSON = []byte(`{"replicas":3,"x":1.5}`)
		}, drift: true},
		"the key": {edit: func(g *v1.DeploymentGrid) { g.Spec.GridUniqKey = "zone" }, drift: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := drift{seen: map[delivery.Key]comparison{}, asked: map[string]request{}}
			g := &v1.DeploymentGrid{}
			must(t, json.Unmarshal([]byte(sent), g))
			g.UID, g.ResourceVersion, g.Generation = "1", "5", 1
			grids, known := map[delivery.Key]client.Object{key: g}, map[delivery.Key]bool{key: true}
			if d.in(set, grids, known) != "" {
				t.Fatal("it differs before the edit")
			}
			if d.in(set, grids, nil) == "" {
				t.Error("that Flux has left it out is no drift")
			}
			edited := g.DeepCopy()
			c.edit(edited)
			edited.Generation++
			grids[key] = edited
			for range 2 { // the second time from memory
				if got := d.in(set, grids, known) != ""; got != c.drift {
					t.Errorf("drift: %t, want %t", got, c.drift)
				}
			}
			delete(grids, key)
			if d.in(set, grids, known) == "" {
				t.Error("a deleted Grid is no drift")
			}
		})
	}
}

// TestParse: a kubeconfig that names a program or a file of the hub is refused.
func TestParse(t *testing.T) {
	text := func(user string) string {
		return fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":"https://east:6443"}}],"users":[{"name":"u","user":%s}],
"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"current-context":"c"}`, user)
	}
	for user, good := range map[string]bool{
		`{"token":"secret"}`:                                 true,
		`{"tokenFile":"/var/run/secrets/token"}`:             false,
		`{"client-certificate":"/a","client-key":"/b"}`:      false,
		`{"exec":{"apiVersion":"v1","command":"/bin/sh"}}`:   false,
		`{"auth-provider":{"name":"oidc","config":{}}}`:      false,
		`{"client-certificate-data":"","username":"a"}`:      true,
		`{"token":"secret","tokenFile":"/etc/kubernetes/x"}`: false,
	} {
		if _, err := parse(text(user)); (err == nil) != good {
			t.Errorf("%s: %v", user, err)
		}
	}
	if _, err := parse("{"); err == nil {
		t.Error("half a kubeconfig is taken")
	}
}
