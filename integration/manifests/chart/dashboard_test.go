package chart

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/text"
)

// registerTypes registers the panels and queries that Grafana's types know. That writes to a map,
// so it is done once.
var registerTypes = sync.OnceFunc(plugins.RegisterDefaultPlugins)

// grafanaBoard is the format that Grafana's sidecar reads.
type grafanaBoard = dashboard.Dashboard //nolint:staticcheck // its successor is for Grafana's API

// board is the chart's dashboard. Grafana ignores a field that it does not know, so a mistyped one
// is found only by its own types, which are strict.
func board(t *testing.T) grafanaBoard {
	t.Helper()
	registerTypes()
	data, _ := at(t, objects(t, newHelm(t), "monitoring.dashboard=true")["ConfigMap/gridproxy-dashboard"], "data").(map[string]any)
	content, _ := data["gridproxy.json"].(string)
	var strict, d grafanaBoard // the strict one has no panels: this release reads and drops them
	var faults cog.BuildErrors // is never nil, but may be empty
	if err := strict.UnmarshalJSONStrict([]byte(content)); !errors.As(err, &faults) || len(faults) > 0 {
		t.Fatalf("files/dashboard.json is not as Grafana's types are:\n%v", err)
	}
	must(t, json.Unmarshal([]byte(content), &d))
	if err := d.Validate(); err != nil {
		t.Errorf("files/dashboard.json has values that Grafana refuses:\n%v", err)
	}
	return d
}

// boardRow is a row of the dashboard with the panels below it.
type boardRow struct {
	Title  string
	Panels []dashboard.Panel
}

func rows(d grafanaBoard) []boardRow {
	var all []boardRow
	for _, p := range d.Panels {
		if p.RowPanel != nil {
			all = append(all, boardRow{Title: *p.RowPanel.Title})
			continue
		}
		last := &all[len(all)-1] // the first panel is a row, else this fails
		last.Panels = append(last.Panels, *p.Panel)
	}
	return all
}

func queries(t *testing.T, p dashboard.Panel) []prometheus.Dataquery {
	t.Helper()
	var all []prometheus.Dataquery
	for _, target := range p.Targets {
		q, ok := target.(prometheus.Dataquery)
		if pointer, is := target.(*prometheus.Dataquery); is {
			q, ok = *pointer, true
		}
		if !ok {
			t.Errorf("panel %q has a query of type %T, which is none of Prometheus", *p.Title, target)
			continue
		}
		all = append(all, q)
	}
	return all
}

// TestDashboard: every panel has a query about metrics and labels that exist, and the numbers come
// before the tables, and these before the graphs.
func TestDashboard(t *testing.T) {
	t.Parallel()
	d := board(t)
	ids := map[uint32]bool{}
	for i, row := range rows(d) {
		for _, p := range row.Panels {
			if ids[*p.Id] {
				t.Errorf("two panels have the id %d", *p.Id)
			}
			ids[*p.Id] = true
			want := []string{"timeseries"}
			switch i {
			case 0:
				want = []string{"stat"}
			case 1:
				want = []string{"table", "text"}
			}
			if !slices.Contains(want, p.Type) {
				t.Errorf("panel %q in row %q is a %s, want one of %v", *p.Title, row.Title, p.Type, want)
			}
			all := queries(t, p)
			for _, q := range all {
				names(t, *p.Title, q.Expr)
				shown(t, *p.Title, q.Expr, *q.LegendFormat, inLegend)
			}
			if (p.Type == "text") != (len(all) == 0) {
				t.Errorf("panel %q is a %s and has %d queries", *p.Title, p.Type, len(all))
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Name == "node" {
			names(t, "variable node", *v.Query.String)
		}
	}
	if len(ids) < 20 {
		t.Errorf("there are %d panels", len(ids))
	}
}

// TestDashboardNamesCommand: the metrics carry no names of Services, so the dashboard says how to
// get them.
func TestDashboardNamesCommand(t *testing.T) {
	t.Parallel()
	for _, row := range rows(board(t)) {
		for _, p := range row.Panels {
			if options, is := p.Options.(*text.Options); is && strings.Contains(options.Content, "gridproxy explain --all\n") {
				return
			}
		}
	}
	t.Error("no text of the dashboard names gridproxy explain --all")
}

// TestDashboardGrid: the panels fill the 24 columns and do not overlap.
func TestDashboardGrid(t *testing.T) {
	t.Parallel()
	taken := map[[2]uint32]string{}
	place := func(title string, g *dashboard.GridPos) {
		if g.X+g.W > 24 || g.H == 0 || g.W == 0 {
			t.Errorf("%q is outside the 24 columns, or empty: %+v", title, *g)
			return
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other, is := taken[[2]uint32{x, y}]; is {
					t.Errorf("%q and %q overlap", title, other)
					return
				}
				taken[[2]uint32{x, y}] = title
			}
		}
	}
	bottom := uint32(0)
	for _, p := range board(t).Panels {
		title, g := "", (*dashboard.GridPos)(nil)
		if p.RowPanel != nil {
			title, g = *p.RowPanel.Title, p.RowPanel.GridPos
		} else {
			title, g = *p.Panel.Title, p.Panel.GridPos
		}
		place(title, g)
		bottom = max(bottom, g.Y+g.H)
	}
	if len(taken) != int(24*bottom) {
		t.Errorf("%d of %d cells of the dashboard are empty", int(24*bottom)-len(taken), 24*bottom)
	}
}

// TestDashboardPage: docs/monitoring.md has a line for each panel, in the order of the dashboard.
func TestDashboardPage(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(read(t, monitoringPage), "## The dashboard\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var got []string
	row := ""
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(line, "| row |") || strings.HasPrefix(line, "|---") {
			continue
		}
		row = cmp.Or(strings.TrimSpace(cells[1]), row)
		got = append(got, row+": "+strings.TrimSpace(cells[2]))
	}
	var want []string
	for _, r := range rows(board(t)) {
		for _, p := range r.Panels {
			want = append(want, r.Title+": "+*p.Title)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/monitoring.md lists the panels\n%s\nwant those of the dashboard\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
