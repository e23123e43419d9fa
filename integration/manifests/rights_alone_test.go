package main

import (
	"path/filepath"
	"testing"

	"gridproxy/integration/env/document"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"

	"k8s.io/client-go/tools/clientcmd"
)

// TestSiteAlone: the commands of docs/site-alone.md give the daemon all the rights that it needs,
// with the certificate of a kubelet and with an account. The API server authorizes by RBAC alone,
// so that what it grants to kubelets in another way cannot help.
func TestSiteAlone(t *testing.T) {
	need.IPTables(t)
	binary := program.ForTest(t, program.Gridproxy)
	w := newSite(t, nodes.ForTest(t, nodes.Options{APIServer: []string{"--allow-privileged=true"}}))
	w.ApplyFile(t, "../../deploy/namespace.yaml", "../../deploy/gridproxy.yaml")
	shell := document.NewShell(t, w.Admin(), map[string]string{"kubectl": w.Tools().Path("kubectl")})
	shell.Link(t, "deploy", "../../deploy")
	page := document.Document{Path: "../../docs/site-alone.md"}

	kubelet := w.UserForTest(t, "system:node:kubelet", "system:nodes")
	shell.Follow(t, page, "With the certificate of the kubelet")
	shell.Follow(t, page, "With an account")
	account, err := clientcmd.BuildConfigFromFlags("", filepath.Join(shell.Dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	daemons := []*daemon{w.newDaemonAs(t, "kubelet", kubelet), w.newDaemonAs(t, "account", account)}
	w.serve(t, daemons, 1)
	for _, d := range daemons {
		d.start(binary)
		wait.Until(t, d.node+" is ready", func() error { return d.namespace.Readyz(t.Context()) })
		wait.Until(t, "its rules lead to the endpoint", func() error { return d.leadsTo(t.Context(), 1) })
	}
	w.annotate(t, "[broken")
	for _, d := range daemons {
		wait.Until(t, d.node+" sends an Event", func() error { return w.told(t.Context(), d, 1) })
		if no := refused(d.count); len(no) > 0 {
			t.Errorf("%s: the rights do not suffice: %v", d.node, no)
		}
	}
}
