package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestDocument: docs/security.md has a line for every right, capability and mount that the manifests give, and none that they
// do not give.
func TestDocument(t *testing.T) {
	text := textOf(t, "../../docs/security.md")
	for heading, manifest := range map[string]string{
		"The daemon's account": "gridproxy.yaml", "The controller's account": "grid-controller.yaml",
		"The controller's account on a hub": "federation/hub.yaml", "The controller's account in a member": "federation/member.yaml",
	} {
		var given []string
		for _, r := range read(t, manifest) {
			given = append(given, r.String())
		}
		same(t, manifest, documented(t, tableUnder(t, text, heading)), given)
	}

	withDNS := renderDNS(t)
	var more []string
	for _, r := range moreRights(t, withDNS) {
		more = append(more, r.String())
	}
	same(t, "gridproxy with dns.enabled", documented(t, tableUnder(t, text, "The daemon's account with `dns.enabled`")), more)

	var powers, sights []string
	for _, file := range []string{"../../deploy/gridproxy.yaml", "../../deploy/grid-controller.yaml", withDNS.server} {
		name, spec := podOf(t, file)
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			powers = append(powers, powersOf(t, c)...)
		}
		sights = append(sights, sightsOf(name, spec)...)
	}
	same(t, "capabilities", pairs(tableUnder(t, text, "Capabilities and privileges")), powers)
	same(t, "what of the Node is visible", pairs(tableUnder(t, text, "What of the Node is visible")), sights)
	wantTests(t, tableUnder(t, text, "What each party can do at worst"))
}

// wantTests looks up the tests in the last cell of each row, which are a folder and a name.
func wantTests(t *testing.T, rows [][]string) {
	t.Helper()
	for _, row := range rows {
		tests := codes(row[len(row)-1])
		if len(tests) == 0 {
			t.Errorf("docs/security.md names no test for %q", row[0])
		}
		for _, test := range tests {
			folder, name, _ := strings.Cut(test, " ")
			files, err := filepath.Glob("../../" + folder + "/*_test.go")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(files, func(file string) bool {
				text, err := os.ReadFile(file)
				return err == nil && strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)")
			}) {
				t.Errorf("docs/security.md names the test %s in %s, which does not exist", name, folder)
			}
		}
	}
}

// same reports what one has and the other has not.
func same(t *testing.T, what string, documented, given []string) {
	t.Helper()
	for _, d := range documented {
		if !slices.Contains(given, d) {
			t.Errorf("%s: docs/security.md explains %q, which the manifest does not give", what, d)
		}
	}
	for _, g := range given {
		if !slices.Contains(documented, g) {
			t.Errorf("%s: the manifest gives %q, which docs/security.md does not explain", what, g)
		}
	}
}

// tableUnder are the cells of the first table after a heading, without its head. Every row must say something in every
// cell.
func tableUnder(t *testing.T, text, heading string) [][]string {
	t.Helper()
	_, section, found := strings.Cut(text, "\n## "+heading)
	if !found {
		t.Fatalf("docs/security.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows [][]string
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i, c := range cells {
			cells[i] = strings.TrimSpace(c)
			if cells[i] == "" {
				t.Errorf("an empty cell in %q", line)
			}
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("the section %q has no table", heading)
	}
	return rows[2:]
}

var code = regexp.MustCompile("`([^`]*)`")

func codes(cell string) []string {
	var all []string
	for _, m := range code.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// documented are the rights of a table. A resource cell is resources, then perhaps "in" a namespace, then perhaps "named"
// objects.
func documented(t *testing.T, rows [][]string) []string {
	t.Helper()
	var all []string
	for _, row := range rows {
		group := ""
		if c := codes(row[0]); len(c) == 1 {
			group = c[0]
		} else if row[0] != "core" {
			t.Errorf("the API group %q is none", row[0])
		}
		cell, named, _ := strings.Cut(row[1], " named ")
		resources, namespace, _ := strings.Cut(cell, " in ")
		names := codes(named)
		if names == nil {
			names = []string{""}
		}
		for _, resource := range codes(resources) {
			for _, verb := range codes(row[2]) {
				for _, name := range names {
					r := Right{Group: group, Resource: resource, Verb: verb, Namespace: strings.Trim(namespace, "`")}
					if name != "" {
						r.Names = []string{name}
					}
					all = append(all, r.String())
				}
			}
		}
	}
	return all
}

func pairs(rows [][]string) []string {
	var all []string
	for _, row := range rows {
		all = append(all, strings.ReplaceAll(row[0]+" "+row[1], "`", ""))
	}
	return all
}

// podOf is what the workload of a manifest runs.
func podOf(t *testing.T, file string) (string, corev1.PodSpec) {
	t.Helper()
	for document := range strings.SplitSeq("\n"+textOf(t, file), "\n---") {
		var workload struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct{ Template corev1.PodTemplateSpec }
		}
		if err := yaml.Unmarshal([]byte(document), &workload); err != nil {
			t.Fatal(err)
		}
		if workload.Kind == "DaemonSet" || workload.Kind == "Deployment" {
			return workload.Metadata.Name, workload.Spec.Template.Spec
		}
	}
	t.Fatalf("%s has no workload", file)
	return "", corev1.PodSpec{}
}

// powersOf are a container's capabilities. What is not privileged must have dropped all, may not gain any, and must not
// write to its image.
func powersOf(t *testing.T, c corev1.Container) []string {
	t.Helper()
	s := c.SecurityContext
	if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
		t.Errorf("container %s may write to its root file system", c.Name)
		return nil
	}
	if s.Privileged != nil && *s.Privileged {
		return []string{c.Name + " privileged"}
	}
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		t.Errorf("container %s may gain privileges", c.Name)
	}
	if s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") {
		t.Errorf("container %s does not drop all capabilities", c.Name)
		return nil
	}
	var all []string
	for _, a := range s.Capabilities.Add {
		all = append(all, c.Name+" "+string(a))
	}
	return all
}

// sightsOf is what a Pod sees of the machine.
func sightsOf(name string, p corev1.PodSpec) []string {
	var all []string
	for what, has := range map[string]bool{"hostNetwork": p.HostNetwork, "hostPID": p.HostPID, "hostIPC": p.HostIPC} {
		if has {
			all = append(all, name+" "+what)
		}
	}
	for _, v := range p.Volumes {
		if v.HostPath != nil {
			all = append(all, name+" "+v.HostPath.Path)
		} else {
			all = append(all, name+" volume "+v.Name)
		}
	}
	return all
}
