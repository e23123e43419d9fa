package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"
	"gridproxy/integration/manifests/chart"

	corev1 "k8s.io/api/core/v1"
)

// dnsManifests are those of the chart with dns.enabled, which no file in deploy has.
type dnsManifests struct {
	rights string // files: the account of the daemon
	daemon string
	server string // grid-dns
}

// renderDNS lets helm write them.
func renderDNS(t *testing.T) dnsManifests {
	t.Helper()
	helm, err := chart.New(t.Context(), os.Stderr, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text, err := helm.Template(t.Context(), "dns.enabled=true")
	if err != nil {
		t.Fatal(err)
	}
	file := func(template string) string {
		var documents []string
		for document := range strings.SplitSeq("\n"+text, "\n---\n") {
			if strings.HasPrefix(document, "# Source: gridproxy/templates/"+template+"\n") {
				documents = append(documents, document)
			}
		}
		return fileIn(t, strings.Join(documents, "\n---\n"))
	}
	return dnsManifests{rights: file("daemon-rights.yaml"), daemon: file("daemon.yaml"), server: file("dns.yaml")}
}

// moreRights are those that the daemon has with grid-dns alone.
func moreRights(t *testing.T, m dnsManifests) []Right {
	t.Helper()
	with, err := Read(m.rights)
	if err != nil {
		t.Fatal(err)
	}
	without := map[string]bool{}
	for _, r := range read(t, "gridproxy.yaml") {
		without[r.String()] = true
	}
	var more []Right
	for _, r := range with {
		if !without[r.String()] {
			more = append(more, r)
		}
	}
	return more
}

// TestDNSRights: a daemon with the flags of the chart for grid-dns needs the rights that it has
// with them, and no others. The others are shown by TestDaemonRights.
func TestDNSRights(t *testing.T) {
	t.Parallel()
	need.IPTables(t)
	m := renderDNS(t)
	more := moreRights(t, m)
	binary := program.ForTest(t, program.Gridproxy)
	w := newSite(t, nodes.ForTest(t, nodes.Options{}))
	w.ApplyFile(t, "../../deploy/crds/superedge.io_statefulsetgrids.yaml")
	w.WaitForDefinitions(t)
	usual := read(t, "gridproxy.yaml")
	whole := w.newDaemon(t, "dns-all", append(slices.Clone(usual), more...))
	daemons := []*daemon{whole}
	for i := range more {
		daemons = append(daemons, w.newDaemon(t, fmt.Sprint("dns-lacks-", i), append(slices.Clone(usual), without(more, i)...)))
	}
	w.serve(t, daemons, 1)
	for _, d := range daemons {
		d.start(binary, append(dnsFlags(t, m), "--names-socket="+filepath.Join(t.TempDir(), "names.sock"))...)
	}
	wait.Until(t, "the daemon with all rights is ready", func() error { return whole.namespace.Readyz(t.Context()) })
	wait.Until(t, "its rules lead to the endpoint", func() error { return whole.leadsTo(t.Context(), 1) })
	idle(t, more, whole.count)
	if no := refused(whole.count); len(no) > 0 {
		t.Errorf("the rights of the chart do not suffice: %v", no)
	}
	for i, r := range more {
		wait.Until(t, "without "+r.String()+" it is refused", func() error { return daemons[i+1].wantRefused(r) })
	}
}

// dnsFlags are those of the daemon that it has with grid-dns alone.
func dnsFlags(t *testing.T, m dnsManifests) []string {
	t.Helper()
	_, with := podOf(t, m.daemon)
	_, usual := podOf(t, "../../deploy/gridproxy.yaml")
	flags := slices.DeleteFunc(slices.Clone(with.Containers[0].Args), func(f string) bool { return slices.Contains(usual.Containers[0].Args, f) })
	if !slices.Contains(flags, "--local-dns") {
		t.Fatalf("the flags for grid-dns are %v", flags)
	}
	return flags
}

// TestDNSPod: grid-dns has no account, and cannot write where the daemon's sockets are.
func TestDNSPod(t *testing.T) {
	_, pod := podOf(t, renderDNS(t).server)
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken || pod.ServiceAccountName != "" {
		t.Errorf("grid-dns has an account: %q", pod.ServiceAccountName)
	}
	for _, c := range pod.Containers {
		for _, m := range c.VolumeMounts {
			if own := m.MountPath == "/run/grid-dns"; m.ReadOnly == own {
				t.Errorf("%s: read-only is %t", m.MountPath, m.ReadOnly)
			}
		}
		if s := c.SecurityContext; !slices.Equal(s.Capabilities.Add, []corev1.Capability{"NET_BIND_SERVICE"}) {
			t.Errorf("grid-dns has the capabilities %s", fmt.Sprint(s.Capabilities.Add))
		}
	}
}
