package superedge

import (
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/document"
	"gridproxy/integration/env/program"

	"k8s.io/client-go/rest"
)

// guide is the document that is proved.
func guide() document.Document {
	return document.Document{Path: "../../docs/migrate-from-superedge.md"}
}

// shell is where the commands of the document are run: in a folder that has what the repository has, with kubectl and
// grid-controller in PATH.
type shell struct {
	document.Shell
	controller string
}

func newShell(t *testing.T, tools apiserver.Tools, admin *rest.Config) shell {
	t.Helper()
	controller := program.ForTest(t, program.GridController)
	s := shell{controller: controller, Shell: document.NewShell(t, admin, map[string]string{
		"kubectl": tools.Path("kubectl"), "grid-controller": controller,
	})}
	s.Link(t, "deploy", "../../deploy")
	return s
}

// follow runs the commands below a heading of the document, and returns what they printed.
func (s shell) follow(t *testing.T, heading string) string {
	t.Helper()
	return s.Follow(t, guide(), heading)
}
