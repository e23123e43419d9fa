package grids

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridproxy/integration/env/wait"
)

// gridOfKey is a DeploymentGrid with any key of Nodes.
func gridOfKey(name, key string, replicas int) string {
	text := deploymentGrid(name, fmt.Sprintf("replicas: %d", replicas))
	return strings.ReplaceAll(text, `"gridUniqKey":"location"`, fmt.Sprintf(`"gridUniqKey":%q`, key))
}

const (
	// unreported is longer than the 10 s in which a second report of a Grid waits.
	unreported = 12 * time.Second
	// quiet is how long nothing may be written: longer than the minute after which a Lease is renewed.
	quiet = 75 * time.Second
)

// rests: nothing is written by anybody in any cluster, not even without effect, but Leases.
func (d *distribution) rests() {
	wait.Until(d.t, "the clusters are at rest", func() error {
		_, err := d.writesIn(unreported)
		return err
	})
	before := d.versions()
	leases, err := d.writesIn(quiet)
	if err != nil {
		d.t.Errorf("written at rest, in %s: %v", quiet, err)
	}
	for s, after := range d.versions() {
		if after != before[s] {
			d.t.Errorf("objects of %s were\n%sand are\n%s", s.name, before[s], after)
		}
	}
	if !d.t.Failed() {
		d.t.Logf("writes at rest in %s, in all clusters: 0 but %d of Leases", quiet, leases)
	}
}

// versions are the resourceVersions of what the distribution writes.
func (d *distribution) versions() map[*site]string {
	d.t.Helper()
	kinds := "gridbundles,gridreports,fleetclusters,deploymentgrids,statefulsetgrids,servicegrids,deployments,services,namespaces"
	all := map[*site]string{}
	for _, s := range d.sites() {
		of := kinds
		if s.engine != nil {
			of += ",kustomizations,externalartifacts"
		}
		all[s] = s.MustKubectl(d.t, "get", of, "--all-namespaces", "--no-headers", "-o",
			"custom-columns=A:.kind,B:.metadata.namespace,C:.metadata.name,D:.metadata.resourceVersion")
	}
	return all
}

// writesIn waits, and returns how many requests were to write Leases meanwhile. An error names all
// others.
func (d *distribution) writesIn(wait time.Duration) (leases int, err error) {
	d.t.Helper()
	before := map[*site]map[string]int{}
	for _, s := range d.sites() {
		before[s] = d.writes(s)
	}
	pauseFor(d.t, wait)
	var others []string
	for _, s := range d.sites() {
		after := d.writes(s)
		for _, kind := range slices.Sorted(maps.Keys(after)) {
			switch n := after[kind] - before[s][kind]; {
			case strings.HasSuffix(kind, " leases"):
				leases += n
			case n > 0:
				others = append(others, fmt.Sprintf("%d %s of %s", n, kind, s.name))
			}
		}
	}
	if len(others) > 0 {
		err = fmt.Errorf("%s", strings.Join(others, ", "))
	}
	return leases, err
}

// writes are how many requests an API server has had that were to change something, whoever sent
// them, by verb and resource. Kubelets and questions about rights are left out.
func (d *distribution) writes(s *site) map[string]int {
	d.t.Helper()
	text, err := s.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(d.t.Context())
	must(d.t, err)
	all := map[string]int{}
	for line := range bytes.Lines(text) {
		m := writeRequests.FindSubmatch(line)
		if m == nil || slices.Contains([]string{"authentication.k8s.io", "authorization.k8s.io"}, string(m[1])) ||
			slices.Contains([]string{"nodes", "serviceaccounts"}, string(m[2])) {
			continue
		}
		n, err := strconv.ParseFloat(string(m[4]), 64)
		must(d.t, err)
		all[string(m[3])+" "+string(m[2])] += int(n)
	}
	if len(all) == 0 {
		d.t.Fatalf("the API server of %s has counted no write at all: has its metric another name now?", s.name)
	}
	return all
}

var writeRequests = regexp.MustCompile(`^apiserver_request_total\{.*dry_run="",.*group="([^"]*)".*,resource="([^"]+)".*verb="(POST|PUT|PATCH|APPLY|DELETE|DELETECOLLECTION)".*\} ([0-9.e+]+)`)
