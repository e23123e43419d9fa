package matrix

import (
	"bytes"
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode/utf8"

	"gridproxy/cmd/command"
	"gridproxy/cmd/inspect/explain"
	"gridproxy/cmd/table"
)

// FormatHTML is the format of a page, beside those of command.PrintAs.
const FormatHTML = "html"

// Print writes a Matrix as JSON, YAML or a page if format is "json", "yaml" or FormatHTML, and
// as a table for any other format. It writes nothing unless the whole Matrix can be rendered.
func Print(w io.Writer, format string, m Matrix) error {
	if format != FormatHTML {
		return command.PrintAs(w, format, m, m.WriteTable)
	}
	var page bytes.Buffer
	if err := m.WriteHTML(&page); err != nil {
		return fmt.Errorf("writing the answer as html: %w", err)
	}
	return command.Flush(w, page.Bytes())
}

// columnsMax is how wide a table with a column for each unit may be.
const columnsMax = 100

// WriteTable writes the Matrix for people: a line for each Service with a column for each unit. If
// that is too wide, the units are in lines, those with the same answer in one.
func (m Matrix) WriteTable(w io.Writer) error {
	t := m.byColumn()
	if width(t) > columnsMax {
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

// names returns the names of the units: their values if there is one key, else key=value.
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

// closedBy returns the cell CLOSED BY of a row, which also says that annotations are malformed.
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

//go:embed page.html
var pageText string

// page is what the template prints. Every text is one that a table could have as a cell.
type page struct {
	Units   []string
	Rows    []pageRow
	LeftOut string
}

type pageRow struct {
	Service, ClosedBy string
	Cells             []pageCell
}

type pageCell struct{ Class, Text string }

// WriteHTML writes the Matrix as one page that needs neither a network nor a script.
func (m Matrix) WriteHTML(w io.Writer) error {
	parsed, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	p := page{Rows: make([]pageRow, 0, len(m.Services)), LeftOut: m.leftOut()}
	for _, name := range m.names() {
		p.Units = append(p.Units, table.Cell(name))
	}
	printed := map[*Cell]pageCell{}
	for _, s := range m.Services {
		row := pageRow{Service: table.Cell(s.Service), ClosedBy: table.Cell(s.closedBy()), Cells: make([]pageCell, len(s.Cells))}
		for i, c := range s.Cells {
			cell, found := printed[c]
			if !found {
				cell = pageCell{strings.ReplaceAll(string(c.Answer), " ", "-"), table.Cell(c.String())}
				printed[c] = cell
			}
			row.Cells[i] = cell
		}
		p.Rows = append(p.Rows, row)
	}
	return parsed.Execute(w, p)
}
