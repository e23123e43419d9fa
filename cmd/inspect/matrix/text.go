package matrix

import (
	"fmt"
	"io"
	"unicode/utf8"

	"gridproxy/cmd/inspect/explain"
	"gridproxy/cmd/table"
)

// maxColumns is how wide a table with a column for each unit may be.
const maxColumns = 100

// WriteTable writes the Matrix for people: a line for each Service with a column for each unit. If
// that is too wide, the units are in lines, those with the same answer in one.
func (m Matrix) WriteTable(w io.Writer) error {
	t := m.byColumn()
	if width(t) > maxColumns {
		t = m.byLine()
	}
	if err := t.Write(w); err != nil || m.LeftOut == 0 {
		return err
	}
	_, err := fmt.Fprintln(w, "\n"+m.leftOut())
	return err
}

// leftOut returns a line about the units that the Matrix lacks, or "" if it has all.
func (m Matrix) leftOut() string {
	if m.LeftOut == 0 {
		return ""
	}
	return fmt.Sprintf("%d more units are left out: name a Service or a namespace, so that only their units count", m.LeftOut)
}

// names returns the names of the units: their values, if there is one key.
func (m Matrix) names() []string {
	keys := map[string]bool{}
	for _, u := range m.Units {
		if u.Key != "" {
			keys[u.Key] = true
		}
	}
	names := make([]string, len(m.Units))
	for i, u := range m.Units {
		if names[i] = u.String(); len(keys) == 1 && u.Key != "" {
			names[i] = u.Value
		}
	}
	return names
}

// closedBy returns the second cell of a row.
func (s Service) closedBy() string {
	if s.Malformed != "" {
		return s.ClosedBy + " (malformed)"
	}
	return s.ClosedBy
}

func (m Matrix) byColumn() table.Table {
	t := table.Table{Columns: append([]string{"SERVICE", "CLOSED BY"}, m.names()...)}
	for _, s := range m.Services {
		row := []string{s.Service, s.closedBy()}
		for _, c := range s.Cells {
			row = append(row, c.String())
		}
		t.Add(row...)
	}
	return t
}

func (m Matrix) byLine() table.Table {
	t := table.Table{Columns: []string{"SERVICE", "CLOSED BY", "UNITS", "ANSWERED BY"}}
	names := m.names()
	for _, s := range m.Services {
		var answers []string // in the order of the units
		units := map[string][]string{}
		for i, c := range s.Cells {
			text := c.String()
			if u := m.Units[i]; c.Answer == explain.Answered && u.Key != "" && len(c.From) == 1 && c.From[0] == u.Value {
				text = "own unit"
			}
			if units[text] == nil {
				answers = append(answers, text)
			}
			units[text] = append(units[text], names[i])
		}
		for _, text := range answers {
			who := table.List(units[text])
			if len(answers) == 1 && len(names) > 1 {
				who = fmt.Sprintf("all %d", len(names))
			}
			t.Add(s.Service, s.closedBy(), who, text)
		}
	}
	return t
}

// width returns how many columns of a terminal a table takes.
func width(t table.Table) int {
	widths := make([]int, len(t.Columns))
	total := -2 // between columns there are two
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		for i, text := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(table.Cell(text)))
		}
	}
	for _, n := range widths {
		total += n + 2
	}
	return total
}
