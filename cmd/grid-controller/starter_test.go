package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gridproxy/cmd/grid-controller/migrate"
	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"

	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// TestStarterAfter: what waits for the resources of another says so.
func TestStarterAfter(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "customresourcedefinitions") {
			w.WriteHeader(http.StatusForbidden)
		} else {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	definitions, err := migrate.NewCheck(config)
	if err != nil {
		t.Fatal(err)
	}
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	fleet := &starter{what: "FleetClusters", group: v1alpha1.GroupVersion(), resources: []string{"fleetclusters"}, api: api, definitions: definitions, log: log}
	grids := &starter{what: "Grids", group: v1.GroupVersion(), resources: []string{"servicegrids"}, after: fleet, api: api, definitions: definitions, log: log}
	got := grids.obstacle(t.Context())
	for _, want := range []string{"the controllers of Grids wait for those of FleetClusters: ", "fleetclusters of superedge.io/v1alpha1 are missing; install them with: "} {
		if got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("%v: want %q", got, want)
		}
	}
	if alone := fleet.obstacle(t.Context()); alone == nil || strings.Contains(alone.Error(), "wait for") {
		t.Errorf("what waits for no other says %v", alone)
	}
}

// TestNodeUnitsFlag: without the half of NodeUnits, nothing of it starts, waits for its
// definitions, or counts for /readyz.
func TestNodeUnitsFlag(t *testing.T) {
	for args, want := range map[string]string{"": "superedge.io site.superedge.io", "--node-units=false": "superedge.io"} {
		o, flags := defaults(), pflag.NewFlagSet("run", pflag.ContinueOnError)
		o.addFlags(flags)
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range starters(nil, o, metrics{}) {
			got = append(got, s.group.Group)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q starts the controllers of %v, want %s", args, got, want)
		}
	}
}
