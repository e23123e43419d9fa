package fleet

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"gridproxy/cmd/table"
)

// WriteTable writes the Report for people: a table of Nodes and one of Grids.
func (r Report) WriteTable(w io.Writer) error {
	nodes := table.Table{Columns: []string{"NODE", "UNIT", "DAEMON", "AGE", "READY", "REASON"}}
	for _, n := range r.Nodes {
		nodes.Add(n.Name, n.unit(r.Keys), string(n.Daemon.State), n.Daemon.age(), n.Ready, n.Daemon.Reason)
	}
	if err := nodes.Write(w); err != nil {
		return err
	}
	if len(r.Grids) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	grids := table.Table{Columns: []string{"GRID", "KEY", "READY", "OFFLINE", "LOST", "FAILED", "CONDITIONS"}}
	for _, g := range r.Grids {
		grids.Add(fmt.Sprintf("%s %s/%s", g.Kind, g.Namespace, g.Name), g.Key, g.ReadyRate,
			strconv.Itoa(int(g.Offline)), strconv.Itoa(int(g.Lost)), strconv.Itoa(int(g.Failed)), strings.Join(g.Conditions, ", "))
	}
	return grids.Write(w)
}

func (d Daemon) age() string {
	if d.AgeSeconds == nil {
		return ""
	}
	return time.Duration(*d.AgeSeconds * float64(time.Second)).Round(time.Second).String()
}
