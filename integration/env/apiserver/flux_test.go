package apiserver

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFlux: what the distribution of Grids relies on is so in Flux's kustomize-controller.
func TestFlux(t *testing.T) {
	e := newEngineTest(t)
	t.Run("a change is applied, what is no longer there is deleted", e.follows)
	t.Run("nothing is deleted because an archive cannot be read", e.keeps)
	t.Run("an empty archive deletes everything", e.empties)
	t.Run("a bad object stops its Kustomization alone", e.isolates)
	t.Run("a deleted Kustomization leaves its objects if it is to", e.orphans)
	t.Run("an edit is reverted on request, and nothing is written without one", e.reverts)
	t.Run("another cluster is written to with its kubeconfig", e.pushes)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.engine.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmRSS:") || strings.HasPrefix(line, "VmHWM:") {
			t.Log("kustomize-controller: ", strings.TrimSpace(line))
		}
	}
}

func (e *engineTest) follows(t *testing.T) {
	e.publish(t, "follows", object("one", "1"), object("two", "1"))
	e.kustomize(t, "follows", nil)
	e.expect(t, e.client, values{"one": "1", "two": "1"})
	e.publish(t, "follows", object("one", "2"), object("two", "1"))
	e.expect(t, e.client, values{"one": "2", "two": "1"})
	e.publish(t, "follows", object("one", "2"))
	e.expect(t, e.client, values{"one": "2", "two": absent})
}

func (e *engineTest) keeps(t *testing.T) {
	e.publish(t, "keeps", object("kept", "1"))
	e.kustomize(t, "keeps", nil)
	e.expect(t, e.client, values{"kept": "1"})
	none, wrong := strings.Repeat("0", 64), strings.Repeat("1", 64)
	e.describe(t, "keeps", "none", none)
	e.expectReady(t, "keeps", "artifact not found")
	e.describe(t, "keeps", e.store(t), wrong)
	e.expectReady(t, "keeps", "failed to verify archive")
	e.expect(t, e.client, values{"kept": "1"})
	e.publish(t, "keeps", object("kept", "2"))
	e.expect(t, e.client, values{"kept": "2"})
}

func (e *engineTest) empties(t *testing.T) {
	e.publish(t, "empties", object("dropped", "1"))
	e.kustomize(t, "empties", nil)
	e.expect(t, e.client, values{"dropped": "1"})
	e.expectReady(t, "empties", "Applied revision") // until then Flux does not know what to delete
	e.publish(t, "empties")
	e.expect(t, e.client, values{"dropped": absent})
	e.expectReady(t, "empties", "Applied revision")
}

func (e *engineTest) isolates(t *testing.T) {
	e.publish(t, "isolates", object("Bad_Name", "1"), object("neighbour", "1"))
	e.kustomize(t, "isolates", nil)
	e.expectReady(t, "isolates", "Bad_Name")
	e.publish(t, "follows", object("one", "3"))
	e.expect(t, e.client, values{"one": "3", "neighbour": absent})
	elsewhere := strings.Replace(object("elsewhere", "1"), `"namespace":"default"`, `"namespace":"nowhere"`, 1)
	e.publish(t, "isolates", elsewhere)
	e.expectReady(t, "isolates", `namespaces "nowhere" not found`)
}

func (e *engineTest) orphans(t *testing.T) {
	e.publish(t, "orphans", object("orphan", "1"))
	e.kustomize(t, "orphans", map[string]any{"deletionPolicy": "Orphan"})
	e.publish(t, "removes", object("removed", "1"))
	e.kustomize(t, "removes", map[string]any{"deletionPolicy": "Delete"})
	for _, name := range []string{"orphans", "removes"} {
		e.expectReady(t, name, "Applied revision")
		if err := e.client.Resource(kustomizations).Namespace("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		e.expectReady(t, name, "not found")
	}
	e.expect(t, e.client, values{"orphan": "1", "removed": absent})
	e.publish(t, "heirs", object("orphan", "2"))
	e.kustomize(t, "heirs", nil)
	e.expect(t, e.client, values{"orphan": "2"})
}

func (e *engineTest) reverts(t *testing.T) {
	e.publish(t, "reverts", object("edited", "1"))
	e.kustomize(t, "reverts", nil)
	e.expect(t, e.client, values{"edited": "1"})
	e.patch(t, configMaps, "edited", `{"data":{"key":"edited"}}`)
	e.request(t, "reverts", "1")
	e.expect(t, e.client, values{"edited": "1"})
	before := e.version(t, "edited")
	for i := range 5 {
		e.request(t, "reverts", fmt.Sprint(i+2))
	}
	if after := e.version(t, "edited"); after != before {
		t.Errorf("the object's resourceVersion went from %s to %s without a difference", before, after)
	}
}

func (e *engineTest) pushes(t *testing.T) {
	e.createSecret(t, "other", e.other.Admin())
	e.publish(t, "pushes", object("pushed", "1"))
	e.kustomize(t, "pushes", map[string]any{"kubeConfig": map[string]any{"secretRef": map[string]any{"name": "other"}}})
	e.expect(t, e.otherClient, values{"pushed": "1"})
	e.expect(t, e.client, values{"pushed": absent})
	e.other.API.Stop()
	e.publish(t, "pushes", object("pushed", "2"))
	e.expectReady(t, "pushes", "connection refused")
	e.publish(t, "follows", object("one", "4"))
	e.expect(t, e.client, values{"one": "4"})
	if err := e.other.API.Start(wait.Usual.Context(t)); err != nil {
		t.Fatal(err)
	}
	e.expect(t, e.otherClient, values{"pushed": "2"})
}
