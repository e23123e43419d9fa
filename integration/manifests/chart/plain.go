package chart

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Placeholders are the values of the plain manifests that a reader replaces, and the notes beside
// them.
func placeholders() []placeholder {
	return []placeholder{
		{`image.repository="gridproxy"`, "image: gridproxy:dev", "your registry"},
		{`apiServers=["192.0.2.1:6443"]`, "--api-servers=192.0.2.1:6443", "your API servers, HOST:PORT,HOST:PORT, not by their cluster IP"},
		{`clusterCIDR="10.244.0.0/16"`, "--cluster-cidr=10.244.0.0/16", "the Pods' ranges"},
	}
}

type placeholder struct {
	value string // of the chart, KEY=JSON
	text  string // that it comes to, at the end of a line
	edit  string // what a reader puts there
}

// part is a plain manifest: a file in deploy, what it is, the templates that make it, and the
// values beside the placeholders.
type part struct {
	file, about string
	templates   []string
	values      []string
}

func parts() []part {
	return []part{
		{"gridproxy.yaml", "gridproxy as a DaemonSet." + how, []string{"daemon-rights", "daemon"}, nil},
		{"grid-controller.yaml", `grid-controller: two replicas, of which one works. Install the CRDs first:
#   kubectl apply --server-side -f deploy/crds` + how, []string{"controller-rights", "controller-policy", "controller"}, nil},
		federationPart("hub", "the hub, which distributes its Grids"),
		federationPart("member", "a member, which has the Grids of a hub"),
	}
}

// how is the head of the manifests that kubectl apply -k deploy/ applies.
const how = `
# Made from deploy/charts/gridproxy by make generate: change it there. Set the values marked EDIT, and apply
# deploy/namespace.yaml first; kubectl apply -k deploy/ does both files and the namespace.
`

// federationPart is what one side of a fleet has beside grid-controller.yaml.
func federationPart(mode, what string) part {
	return part{"federation/" + mode + ".yaml", "What grid-controller needs in " + what + `: docs/federation.md. Apply it after
# deploy/grid-controller.yaml, and add --federation=` + mode + ` to the arguments there.
# Made from deploy/charts/gridproxy by make generate: change it there.
`, []string{"federation"}, []string{`federation.mode="` + mode + `"`}}
}

// Plain renders the manifests in deploy, by their file.
func Plain(ctx context.Context, h Helm) (map[string]string, error) {
	var values []string
	for _, p := range placeholders() {
		values = append(values, p.value)
	}
	files := map[string]string{}
	for _, p := range parts() {
		text, err := h.Template(ctx, slices.Concat(values, p.values)...)
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", p.file, err)
		}
		sources := bySource(text)
		var documents []string
		for _, t := range p.templates {
			documents = append(documents, sources[Name+"/templates/"+t+".yaml"]...)
		}
		files[p.file] = "# " + p.about + marked(unreleased(strings.Join(documents, "---\n")))
	}
	return files, nil
}

// unreleased leaves out the labels of a release: kubectl makes none. With the label of helm as
// manager, tools would take the objects for helm's.
func unreleased(text string) string {
	release := []string{"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"}
	return strings.Join(slices.DeleteFunc(strings.SplitAfter(text, "\n"), func(line string) bool {
		key, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		return slices.Contains(release, key)
	}), "")
}

func marked(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		for _, p := range placeholders() {
			if strings.HasSuffix(line, p.text) {
				lines[i] = line + " # EDIT: " + p.edit
			}
		}
	}
	return strings.Join(lines, "\n")
}

// bySource are the documents of helm's output by the template that each is from, in the order of the template. Helm
// orders by kind, which within one template is the order that a reader expects, too.
func bySource(text string) map[string][]string {
	documents := map[string][]string{}
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		named, found := strings.CutPrefix(document, "# Source: ")
		if !found {
			continue // in front of the first one there is nothing
		}
		source, rest, _ := strings.Cut(named, "\n")
		documents[source] = append(documents[source], strings.TrimRight(rest, "\n")+"\n")
	}
	for _, d := range documents {
		slices.SortStableFunc(d, func(a, b string) int { return rank(a) - rank(b) })
	}
	return documents
}

// rank puts what has rights before the rights, and these before what uses them.
func rank(document string) int {
	order := []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
	for i, kind := range order {
		if strings.Contains("\n"+document, "\nkind: "+kind+"\n") {
			return i
		}
	}
	return len(order)
}
